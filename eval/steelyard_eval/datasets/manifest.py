"""Reads dataset.json: the name of the set, its clock, its template, and the hashes of its files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError, Fault, shown, visible
from steelyard.base.fields import parse_time
from steelyard.base.files import canonical, write_text
from steelyard.memory.entry import FIELDS, read_fields
from steelyard.memory.template import template_fields
from steelyard_eval.datasets.file_reader import FolderReader, meant
from steelyard_eval.datasets.labels import Batch, JudgedPool, read_pool, read_provenance, read_sampled
from steelyard_eval.datasets.named import EMBEDDERS, RULE, Naming
from steelyard_eval.datasets.starter import starter, workshop

FILE = "dataset.json"
SHORT = 12
"""Digits of a SHA-256 that messages show."""

_COUNTED = {
    "corpus.jsonl": "documents",
    "queries.jsonl": "queries",
    "qrels.txt": "judgments",
    "qrels.tsv": "judgments",
}
"""What `counts` calls the lines of a file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a data set; `as_of` in seconds UTC, None when it is not given."""

    name: str = ""
    description: str = ""
    licence: str = ""
    as_of: float | None = None
    recipe: str = ""
    report_split: str = ""
    system: str = ""
    embedder: str = ""
    sampled: str = ""
    pool: JudgedPool | None = None
    provenance: tuple[Batch, ...] = ()
    imported: bool = False
    """Whether an import wrote the set, and so knows of fields that only the store has."""


_TEXT = FIELDS["text"]
_PARSERS: dict[str, Callable[[object], object]] = {
    "name": _TEXT,
    "description": _TEXT,
    "licence": _TEXT,
    "as_of": parse_time,
    "text_for_embedding": _TEXT,
    "report_split": _TEXT,
    "system": _TEXT,
}
_KEYS = _PARSERS.keys() | {"counts", "embedder", "files", "provenance", "sampled"}
"""Keys whose misspellings are faults; `pool` is too much like other words, such as tool."""


def read_manifest(reader: FolderReader, sealed: bool = True) -> Manifest:
    """Read dataset.json; fields with faults keep their defaults. `sealed`: files must have the hashes in it."""
    record = reader.json_object(FILE)
    if record is None:
        return Manifest()
    if "licence" not in record and "license" in record:
        record["licence"] = record["license"]
    values, faults = read_fields(record, _PARSERS, (), FILE, 0)
    reader.faults += faults
    if record.get("name") in (None, ""):
        reader.fault(FILE, 0, "name", "", "is missing or empty", 'Add "name": "..."')
    recipe = values.pop("text_for_embedding", "")
    values["system"] = _system(reader, values.get("system", ""))
    _check_keys(reader, record)
    _check_recipe(reader, recipe)
    if sealed:
        _check_files(reader, record.get("files"))
    sampled = read_sampled(reader, FILE, record.get("sampled"))
    pool, imported = read_pool(reader, FILE, record.get("pool")), isinstance(record.get("source"), dict)
    return Manifest(
        recipe=recipe,
        embedder=_embedder(reader, record.get("embedder")),
        sampled=sampled,
        pool=pool,
        provenance=read_provenance(reader, FILE, record.get("provenance")),
        imported=imported,
        **values,
    )


def check_report_split(reader: FolderReader, manifest: Manifest, splits: set[str]) -> None:
    """Record a fault when `report_split` is not a split of the queries."""
    if manifest.report_split and manifest.report_split not in splits | {"all"}:
        rule = f"is the split of no query (there are: {', '.join(sorted(splits)) or 'none'})"
        value = shown(manifest.report_split)
        reader.fault(FILE, 0, "report_split", value, rule, "Name one of them, or leave the field out")


def _system(reader: FolderReader, text: str) -> str:
    """What is used today, as a command would name it; empty, and a fault, for what no file may name."""
    try:
        return Naming(FILE, reader.folder).contender(text) if text else ""
    except ConfigError:
        rule = f"is no system, no strategy and no weights file or run in the folder ({RULE})"
        reader.fault(FILE, 0, "system", shown(text), rule, "Correct it, or name what you use on the command line")
        return ""


def _embedder(reader: FolderReader, name: object) -> str:
    """What makes the vectors, as a command would name it; empty, and a fault, for what no file may name."""
    if name is None:
        return ""
    kind = name.partition(":")[0] if isinstance(name, str) else ""
    try:
        if isinstance(name, str) and kind in EMBEDDERS and (kind == "recorded" or kind == name):
            return Naming(FILE, reader.folder).embedder(name)
        rule = f"is no embedder (there are: {', '.join(EMBEDDERS)}, recorded:MODEL)"
    except ConfigError as error:
        rule = str(error)
    reader.fault(FILE, 0, "embedder", shown(name), rule, "Correct it, or leave it out")
    return ""


def choose_for(folder: Path, embedder: str | None) -> bool:
    """Let dataset.json say which embedder makes the vectors from now on; None takes that out.

    Returns whether it was written. It is not where it says so already, cannot be written or comes with the
    package, nor for what no file may name.
    """
    place = folder / FILE
    shipped = any(path.exists() and folder.resolve() == path.resolve() for path in (starter(), workshop()))
    if shipped or embedder == "api" or not os.access(place, os.W_OK) or place.is_symlink():
        return False
    record = FolderReader(folder).json_object(FILE)
    if record is None or record.get("embedder") == embedder:
        return False
    others = {key: value for key, value in record.items() if key != "embedder"}
    write_text(place, canonical(others | ({"embedder": embedder} if embedder else {})))
    return True


def _check_keys(reader: FolderReader, record: Mapping[str, object]) -> None:
    """Record a fault for a key that looks like a misspelt key of the format; other keys are kept."""
    foreign = record.keys() - _KEYS
    for key in sorted(_KEYS - record.keys()):
        other = meant(key, foreign)
        if other is not None:
            rule = f"is no key of the format; did you mean {key!r}?"
            reader.fault(FILE, 0, shown(other, 40), "", rule, f"Write it as {key!r}")


def _check_recipe(reader: FolderReader, recipe: str) -> None:
    remedy = 'Write it as "{title} said: {text}"'
    try:
        named = template_fields(recipe)
    except ConfigError as error:
        reader.fault(FILE, 0, "text_for_embedding", shown(recipe), str(error), remedy)
        return
    if recipe and not named:
        reader.fault(FILE, 0, "text_for_embedding", shown(recipe), "names no field", remedy)


def holds_hash(folder: Path, name: str) -> bool:
    """Whether dataset.json holds the hash of a file, which then cannot change without it."""
    files = (FolderReader(folder).json_object(FILE) or {}).get("files")
    return isinstance(files, dict) and name in files


def recounted(record: Mapping[str, Any], changed: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """The `counts` of dataset.json, those that it has, anew for files that changed: their lines by name."""
    counts = record.get("counts")
    if not isinstance(counts, dict):
        return {}
    now = {_COUNTED[name]: len(lines) - _is_header(name, lines) for name, lines in changed.items()}
    return {"counts": {**counts, **{key: count for key, count in now.items() if key in counts}}}


def _is_header(name: str, lines: Sequence[str]) -> bool:
    """Whether the first line is one of names, as a file of three columns may have."""
    return name == "qrels.tsv" and bool(lines) and not lines[0].split()[-1].lstrip("-").isdigit()


def accept(folder: Path, faults: Sequence[Fault]) -> dict[str, str | None]:
    """Take the files as they are now: write the hashes of those that differ into dataset.json, and return them.

    None is in place of the hash of a file that is gone, whose name is removed. Nothing is written, and the result
    is empty, while the data set has other faults.
    """
    reader = FolderReader(folder)
    record = reader.json_object(FILE) or {}
    digests = _differing(reader, record.get("files"))
    fields = {*map(_field, digests)}
    if not digests or any(fault.file != FILE or fault.field not in fields for fault in faults):
        return {}
    files = {name: digest for name, digest in {**record["files"], **digests}.items() if digest is not None}
    changed = {
        name: [text for _, text in reader.lines(name) or () if text]
        for name, digest in digests.items()
        if digest and name in _COUNTED
    }
    write_text(folder / FILE, canonical({**record, "files": files, **recounted(record, changed)}))
    return digests


def _check_files(reader: FolderReader, files: object) -> None:
    """Compare the hashes in dataset.json with those of the files."""
    if files is not None and not isinstance(files, dict):
        rule = "must be an object of file names and SHA-256 hashes"
        reader.fault(FILE, 0, "files", shown(files), rule, 'Write it as {"qrels.txt": "..."}')
        return
    for name in files or ():
        if not _is_plain(name):
            reader.fault(
                FILE, 0, _field(name), "", "must be the plain name of a file in the folder", "Remove the path"
            )
    command = f"steelyard check {shlex.quote(visible(str(reader.folder)))} --accept"
    remedy = f"Restore the file; if this was on purpose: {command}"
    for name, digest in _differing(reader, files).items():
        rule = f"differs from the file's SHA-256 {digest[:SHORT]}" if digest else "names a file that is missing"
        reader.fault(FILE, 0, _field(name), shown(_short(files[name])) if files and digest else "", rule, remedy)


def _short(digest: object) -> object:
    return digest[:SHORT] if isinstance(digest, str) else digest


def _differing(reader: FolderReader, files: object) -> dict[str, str | None]:
    """The files that are not what dataset.json says, with their hash; None for one that is gone."""
    named = files if isinstance(files, dict) else {}
    now = {
        name: reader.digest(name) if (reader.folder / name).is_file() else None
        for name in filter(_is_plain, named)
    }
    return {name: digest for name, digest in now.items() if digest is None or str(named[name]).lower() != digest}


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not any(c in name for c in "/\\\0")


def _field(name: str) -> str:
    return f"files[{shown(name)}]"
