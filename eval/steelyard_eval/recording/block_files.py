"""The file of a block of a recording: its rows before facts are joined, as plain arrays without pickle."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np

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


def load_block(file: Path) -> Part:
    """Read the rows that `save_block` wrote; DataError for a file that is not whole."""
    try:
        with open_regular(file) as stream, np.load(stream, allow_pickle=False) as held:
            arrays = dict(held)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        place, reason = shown(str(file), PATH_WIDTH), shown(str(error), 200)
        raise DataError(f"{place} is no whole block of a recording ({reason}); remove its folder") from None
    families = {
        kind: {name.partition(".")[2]: own for name, own in arrays.items() if name.startswith(f"{kind}.")}
        for kind in FAMILIES
    }
    ids = STRICT_JSON.decode(arrays["ids"].tobytes().decode())
    return Part(ids, arrays["offsets"], arrays["entry"], **families)
