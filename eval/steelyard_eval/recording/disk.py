"""Recordings on disk: a folder with `manifest.json` and one `.npy` file for each column.

Columns are opened memory-mapped and without pickle, so a recording may be larger than memory.
"""

import ctypes
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import PATH_WIDTH, DataError, quote
from steelyard.base.files import STRICT_JSON, canonical, draft, inside, open_regular, read_text, write_bytes
from steelyard.table.join import Part
from steelyard.table.signal_table import ENDS, LABEL_FACTS, NUMBER_FACTS, Facts, Labels, SignalTable, TagSets

_SWAP = 2  # RENAME_EXCHANGE in linux/fs.h
_HERE = -100  # AT_FDCWD in fcntl.h: paths are relative to the working directory
SCHEMA_VERSION = 2
LARGEST = 1e100
"""The largest number accepted in a recording, far above any score or date; above it sums could overflow."""
Arrays = dict[str, NDArray[Any]]


def save(table: SignalTable, folder: Path) -> None:
    """Write a recording; the folder appears whole or not at all, replacing an older recording.

    Raises DataError when the folder exists and is not a recording, MachineError when it cannot be written.
    """
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise DataError(f"{quote(str(folder), PATH_WIDTH)} exists and is not a recording; name another folder")
    with draft(folder, folder=True) as part:
        _write(table, part)
        move_folder(part, folder)


def load(folder: Path) -> SignalTable:
    """Open a recording with memory-mapped columns; DataError when it is broken or of another version."""
    try:
        manifest = STRICT_JSON.decode(read_text(folder / "manifest.json"))
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise DataError(
                f"{quote(str(folder), PATH_WIDTH)}: recording of schema {quote(manifest['schema_version'])}, "
                f"this Steelyard reads {SCHEMA_VERSION}; record again"
            )
        arrays = {name: _read(inside(folder, f"{name}.npy"), shape) for name, shape in manifest["arrays"].items()}
        _check(manifest, arrays)
        return _table(manifest, arrays)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        place, reason = quote(str(folder), PATH_WIDTH), quote(str(error), 200)
        raise DataError(f"{place} is not a complete recording ({reason}); record again") from None


def _write(table: SignalTable, folder: Path) -> None:
    arrays: Arrays = {"offsets": table.offsets, "entry": table.entry}
    arrays |= {f"column.{name}": values for name, values in table.columns.items()}
    arrays |= {f"position.{name}": values for name, values in table.positions.items()}
    if table.directory is not None:
        arrays["directory"] = table.directory
    if table.vectors is not None:
        arrays["vectors"] = table.vectors
    vocabularies: dict[str, list[str]] = {}
    for side, facts in (("about", table.entry_facts), ("asked", table.query_facts)):
        arrays |= {f"{side}.{name}": values for name, values in facts.numbers.items()}
        arrays |= {f"{side}.tags.offsets": facts.tags.offsets, f"{side}.tags.codes": facts.tags.codes}
        for name, labels in facts.labels.items():
            vocabularies[f"{side}.{name}"] = list(labels.words)
            arrays[f"{side}.{name}"] = labels.codes
    for name, values in arrays.items():
        _save(folder / f"{name}.npy", values)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": dict(table.fingerprint),
        "queries": list(table.queries),
        "entries": list(table.entries),
        "arrays": {name: list(values.shape) for name, values in arrays.items()},
        "vocabularies": vocabularies,
    }
    write_bytes(folder / "manifest.json", canonical(manifest).encode())


def _save(path: Path, array: NDArray[Any]) -> None:
    """Write what np.save writes, which reports no error when the disk is full at the last few bytes."""
    plain = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(plain))
    write_bytes(path, header.getvalue(), plain.data)


def _read(path: Path, shape: Sequence[int]) -> NDArray[Any]:
    try:
        with np.errstate(over="ignore"):  # the size of a shape that no file has
            with open_regular(path) as stream:
                if 0 in shape:  # an empty file cannot be mapped
                    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
            if 0 not in shape:
                array = np.lib.format.open_memmap(str(path), mode="r")
    except Exception as error:  # a broken header makes numpy raise almost anything
        raise ValueError(f"{path.name}: {error}") from None
    if list(array.shape) != list(shape):
        raise ValueError(f"{path.name} has shape {array.shape}, but {tuple(shape)} in the manifest")
    return array


def _check(manifest: Mapping[str, Any], arrays: Arrays) -> None:
    """Raise ValueError for anything that would break a replay or silently make its numbers wrong."""
    queries, entries, rows = len(manifest["queries"]), len(manifest["entries"]), len(arrays["entry"])
    vocabularies = manifest["vocabularies"]
    for name, words in {**vocabularies, **{name: manifest[name] for name in ("queries", "entries")}}.items():
        _expect(isinstance(words, list) and all(isinstance(word, str) for word in words), name, "must be words")
    spans = {"offsets": (queries, rows)}
    codes = {"entry": (rows, entries), **({"directory": (entries, entries)} if "directory" in arrays else {})}
    numbers = {name: (rows,) for name in arrays if name.startswith("column.")}
    asked = [name.removeprefix("asked.") for name in arrays]
    ends = [name for name in asked if name.partition(" ")[0] in ENDS]  # between which a retriever's scores can lie
    for side, size, facts, labels in (
        ("about", entries, NUMBER_FACTS, LABEL_FACTS),
        ("asked", queries, ("clock", *ends), ("intent", "domain")),
    ):
        tags = len(arrays[f"{side}.tags.codes"])
        spans[f"{side}.tags.offsets"], codes[f"{side}.tags.codes"] = (size, tags), (tags, 2**31 - 1)
        codes |= {name: (size, len(vocabularies[name])) for name in (f"{side}.{label}" for label in labels)}
        numbers |= {f"{side}.{fact}": (size,) for fact in facts}
    for name, span in spans.items():
        _check_spans(arrays, name, *span)
    for name, code in codes.items():
        _check_codes(arrays, name, *code)
    for name, shape in numbers.items():
        _check_numbers(arrays, name, shape)
    for name, values in arrays.items():
        if name.startswith("position."):
            _expect(values.dtype.kind == "i" and values.shape == (rows,), name, "must be one integer a row")
    if "vectors" in arrays:
        vectors = arrays["vectors"]
        sound = vectors.dtype == np.float32 and vectors.ndim == 2 and len(vectors) == entries
        _expect(sound and bool(np.isfinite(vectors).all()), "vectors", "must be finite float32 rows")
    fingerprint = manifest["fingerprint"]
    for name in ("field_weights", "filters", "similarity", "max_depth"):
        _expect(isinstance(fingerprint[name], dict), f"fingerprint.{name}", "must be an object")
    _expect(all(isinstance(v, int) for v in fingerprint["max_depth"].values()), "max_depth", "must hold integers")
    _expect(isinstance(fingerprint["model"], str), "fingerprint.model", "must be a name")


def _check_spans(arrays: Arrays, name: str, count: int, size: int) -> None:
    """Offsets of `count` spans that cover `size` places, in order."""
    ends = arrays[name]
    _expect(ends.dtype.kind == "i" and ends.shape == (count + 1,), name, f"must be {count + 1} integers")
    whole = bool(ends[0] == 0 and ends[-1] == size and (np.diff(ends) >= 0).all())
    _expect(whole, name, f"must ascend from 0 to {size}")


def _check_codes(arrays: Arrays, name: str, count: int, limit: int) -> None:
    codes = arrays[name]
    _expect(codes.dtype.kind == "i" and codes.shape == (count,), name, f"must be {count} integers")
    _expect(not count or bool(codes.min() >= 0 and codes.max() < limit), name, f"must lie in 0..{limit - 1}")


def _check_numbers(arrays: Arrays, name: str, shape: tuple[int, ...]) -> None:
    """Numbers that may be missing (NaN), without copying an array that may be larger than memory."""
    values = arrays[name]
    _expect(values.dtype == np.float64 and values.shape == shape, name, f"must be {shape} float64")
    most, least = np.fmax.reduce(values, None, initial=0.0), np.fmin.reduce(values, None, initial=0.0)
    _expect(bool(most <= LARGEST and least >= -LARGEST), name, "holds a number too large")


def _expect(sound: bool, name: str, rule: str) -> None:
    if not sound:
        raise ValueError(f"{name} {rule}")


def _table(manifest: Mapping[str, Any], arrays: Arrays) -> SignalTable:
    def named(kind: str) -> Arrays:
        return {k.removeprefix(f"{kind}."): v for k, v in arrays.items() if k.startswith(f"{kind}.")}

    def facts(side: str) -> Facts:
        own = named(side)
        tags = TagSets(own.pop("tags.offsets"), own.pop("tags.codes"))
        words = {name: manifest["vocabularies"].get(f"{side}.{name}") for name in own}
        labels = {name: Labels(own.pop(name), tuple(known)) for name, known in words.items() if known is not None}
        return Facts(own, labels, tags)

    return SignalTable(
        queries=tuple(manifest["queries"]),
        entries=tuple(manifest["entries"]),
        offsets=arrays["offsets"],
        entry=arrays["entry"],
        columns=named("column"),
        positions=named("position"),
        entry_facts=facts("about"),
        query_facts=facts("asked"),
        fingerprint=manifest["fingerprint"],
        directory=arrays.get("directory"),
        vectors=arrays.get("vectors"),
    )


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
        if not (isinstance(ids, list) and all(isinstance(id_, str) for id_ in ids)):
            raise ValueError("ids must be a list of words")
        rows = len(arrays["entry"])
        _check_spans(arrays, "offsets", queries, rows)
        _check_codes(arrays, "entry", rows, len(ids))
        for name, values in arrays.items():
            kind = name.partition(".")[0]
            if kind == "positions":
                _expect(values.dtype.kind == "i" and values.shape == (rows,), name, "must be one integer a row")
            elif kind in FAMILIES:
                _check_numbers(arrays, name, (rows,) if kind == "columns" else (queries, 2))
        return Part(ids, arrays["offsets"], arrays["entry"], **families)
    except (OSError, ValueError, TypeError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        place, reason = quote(str(file), PATH_WIDTH), quote(str(error), 200)
        raise DataError(f"{place} is not a complete block of a recording ({reason}); remove its folder") from None


def _array(member: bytes) -> NDArray[Any]:
    """An array, which can only be read; ValueError unless what its head asks for is there."""
    stream = io.BytesIO(member)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    begin = stream.tell()
    return np.frombuffer(member, dtype, (len(member) - begin) // max(dtype.itemsize, 1), begin).reshape(shape)


def move_folder(source: Path, target: Path) -> None:
    """Put a folder in the place of another in one step; what stood there is then at `source`.

    Where the system cannot swap (Linux can), `target` is away between two renames.
    """
    if not target.exists():
        source.rename(target)
        return
    try:
        names = (_HERE, os.fsencode(source), _HERE, os.fsencode(target))
        swapped = ctypes.CDLL(None).renameat2(*names, _SWAP) == 0
    except (AttributeError, OSError, TypeError):
        swapped = False
    if not swapped:
        target.rename(source / "replaced")
        source.rename(target)
        (target / "replaced").rename(source)
