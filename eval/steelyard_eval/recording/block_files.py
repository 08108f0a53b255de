"""The file of a block of a recording: its rows before facts are joined, as plain arrays without pickle."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON, draft, write_bytes
from steelyard.base.inputs import open_regular
from steelyard.table.join import Part

FAMILIES = ("columns", "positions", "ends")


def save_block(part: Part, file: Path) -> None:
    """Write the rows; the file appears whole or not at all. Raises MachineError when it cannot be written."""
    arrays = {f"{kind}.{name}": values for kind in FAMILIES for name, values in getattr(part, kind).items()}
    ids = np.frombuffer(json.dumps(list(part.entries)).encode(), dtype=np.uint8)
    whole = io.BytesIO()
    np.savez(whole, ids=ids, offsets=part.offsets, entry=part.entry, **arrays)
    with draft(file) as path:
        write_bytes(path, whole.getbuffer())
        path.replace(file)


def load_block(file: Path, queries: int) -> Part:
    """Read the rows of so many queries that `save_block` wrote; DataError for any other file."""
    try:
        with open_regular(file) as stream, zipfile.ZipFile(stream) as members:
            if any(member.compress_type for member in members.infolist()):
                raise ValueError("a part of it is compressed")
            arrays = {name.removesuffix(".npy"): _array(members.read(name)) for name in members.namelist()}
        families = {
            kind: {name.partition(".")[2]: arrays[name] for name in arrays if name.startswith(f"{kind}.")}
            for kind in FAMILIES
        }
        ids = STRICT_JSON.decode(arrays["ids"].tobytes().decode())
        part = Part(ids, arrays["offsets"], arrays["entry"], **families)
        if not _is_sound(part, queries):
            raise ValueError("its columns do not fit together")
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        place, reason = shown(str(file), PATH_WIDTH), shown(str(error), 200)
        raise DataError(f"{place} is no whole block of a recording ({reason}); remove its folder") from None
    return part


def _array(member: bytes) -> NDArray[Any]:
    """An array, which can only be read; ValueError unless what its head asks for is there."""
    stream = io.BytesIO(member)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    begin = stream.tell()
    return np.frombuffer(member, dtype, (len(member) - begin) // max(dtype.itemsize, 1), begin).reshape(shape)


def _is_sound(part: Part, queries: int) -> bool:
    rows, offsets, entry = len(part.entry), part.offsets, part.entry
    numbers = [*part.columns.values(), *part.ends.values()]
    return (
        isinstance(part.entries, list)
        and all(isinstance(id_, str) for id_ in part.entries)
        and offsets.dtype == np.int64
        and offsets.shape == (queries + 1,)
        and bool(offsets[0] == 0 and offsets[-1] == rows and (np.diff(offsets) >= 0).all())
        and all(array.dtype.kind == "i" and array.shape == (rows,) for array in (entry, *part.positions.values()))
        and (not rows or bool(entry.min() >= 0 and entry.max() < len(part.entries)))
        and all(array.dtype == np.float64 and not np.isinf(array).any() for array in numbers)
        and all(array.shape == (rows,) for array in part.columns.values())
        and all(array.shape == (queries, 2) for array in part.ends.values())
    )
