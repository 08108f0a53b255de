"""Reads dataset.json: the name of the set, its clock, its template, the hashes of its files, and what it names.

What a file may name as a contender follows one rule, for whatever somebody else may have written: whatever asks
(an endpoint) or runs (a function, a command) comes from the command line or from Python alone. A data set or a
baseline names systems, expressions, and files in its own folder; links count by where they lead.
"""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePath

from steelyard.base.errors import PATH_WIDTH, ConfigError, Fault, quote, visible
from steelyard.base.fields import parse_time
from steelyard.base.files import canonical, inside, write_text
from steelyard.embedders.embed import KINDS as MODELS
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import FIELDS, read_fields
from steelyard.memory.text import template_fields
from steelyard.systems import find_system
from steelyard_eval.datasets.corpus_and_queries import read_languages
from steelyard_eval.datasets.file_reader import FolderReader, meant
from steelyard_eval.datasets.labels import Batch, JudgedPool, read_labels

FILE = "dataset.json"
DIGITS = 12  # digits of a SHA-256 that messages show


@dataclass(frozen=True, eq=False)  # two data sets are never one
class Manifest:
    """The description of a data set; `as_of` in seconds UTC, None when it is not given."""

    name: str = ""
    description: str = ""
    licence: str = ""
    as_of: float | None = None
    recipe: str = ""
    report_split: str = ""
    language: tuple[str, ...] = ()
    system: str = ""
    embedder: str = ""
    sampled: str = ""
    groups: str = ""
    pool: JudgedPool | None = None
    provenance: tuple[Batch, ...] = ()
    imported: bool = False
    """Whether an import wrote the set, and so knows of fields that only the store has."""


_TEXTS = ("name", "description", "licence", "text_for_embedding", "report_split", "system")
_PARSERS: dict[str, Callable[[object], object]] = {"as_of": parse_time, **dict.fromkeys(_TEXTS, FIELDS["text"])}
_KEYS = _PARSERS.keys() | {"counts", "embedder", "files", "groups", "language", "provenance", "sampled"}
"""Keys whose misspellings are faults; `pool` is too much like other words, such as tool."""
KIND_CHECKS: Mapping[str, Callable[[str], object]] = {"system": find_system, "strategy": parse_strategy}
FILES = {".json": "weights", ".run": "run"}
"""The kinds of contenders that are files, by the endings of their names."""
EMBEDDERS = ("auto", "recorded", "lsa", "none", *MODELS)
RULE = "what a file names is never asked, run, or opened outside its folder"


@dataclass(frozen=True)
class Naming:
    """A file that names contenders: what it is called in messages, and the folder whose files it may name.

    `instead` says how another file is named where one is gone.
    """

    file: str
    folder: Path
    instead: str = "correct its name"

    @classmethod
    def of_baseline(cls, path: Path) -> "Naming":
        """A baseline may name files of the working directory when it is in there, else of its own folder."""
        within = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(Path()))
        return cls(f"the baseline {quote(str(path), PATH_WIDTH)}", Path() if within else path.parent)

    def contender(self, text: str) -> str:
        """A contender of any kind, as a command would name it; ConfigError for what no file may name."""
        if (kind := FILES.get(PurePath(text).suffix)) is not None:
            return self.of_kind(kind, text)
        for read in KIND_CHECKS.values():
            with suppress(ConfigError):
                read(text)
                return text
        raise self._refused(text, "is neither a documented system nor a strategy")

    def of_kind(self, kind: str, text: str) -> str:
        """A contender of one kind, as a command would name it; ConfigError for what no file may name."""
        if kind in KIND_CHECKS:
            KIND_CHECKS[kind](text)
            return text
        if kind not in FILES.values():
            raise self._refused(text, f"is of the kind {quote(kind)}")
        place = quote(str(self.folder), PATH_WIDTH)
        try:
            exists = inside(self.folder, text).is_file()
        except (ValueError, OSError):
            raise self._refused(text, f"is not a file in {place}") from None
        if not exists:
            gone = f"{self.file} names {quote(text)}, which is missing: there is no file in {place} of that name"
            raise ConfigError(f"{gone}; put it back, or {self.instead}")
        return os.path.join(self.folder, text)  # noqa: PTH118 -- it keeps the ./ before what could be a label

    def holds(self, text: str) -> bool:
        """Whether a file lies, and leads, inside the folder, so that it may be named."""
        try:
            inside(self.folder, text)
        except ValueError:
            return False
        return True

    def embedder(self, name: str) -> str:
        """An embedder that asks nobody; ConfigError for the others."""
        if name == "api":
            raise ConfigError(f"{self.file} names the embedder api; {RULE}, so write --embedder api yourself")
        return name

    def _refused(self, text: str, reason: str) -> ConfigError:
        remedy = "name it on the command line, or in Python"
        return ConfigError(f"{self.file} names {quote(text)}, which {reason}; {RULE}, so {remedy}")


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
    foreign = record.keys() - _KEYS
    for key in sorted(_KEYS - record.keys()):
        if other := meant(key, foreign):
            rule = f"is no key of the format; did you mean {key!r}?"
            reader.fault(FILE, 0, quote(other, 40), "", rule, f"Write it as {key!r}")
    try:
        rule = "" if template_fields(recipe) or not recipe else "names no field"
    except ConfigError as error:
        rule = str(error)
    if rule:
        remedy = 'Write it as "{title} said: {text}"'
        reader.fault(FILE, 0, "text_for_embedding", quote(recipe), rule, remedy)
    if sealed:
        _check_hashes(reader, record.get("files"))
    return Manifest(
        recipe=recipe,
        embedder=_embedder(reader, record.get("embedder")),
        imported=isinstance(record.get("source"), dict),
        language=read_languages(reader, record.get("language")),
        **read_labels(reader, FILE, record),
        **values,
    )


def check_report_split(reader: FolderReader, manifest: Manifest, splits: set[str]) -> None:
    """Record a fault when `report_split` is not a split of the queries."""
    if manifest.report_split and manifest.report_split not in splits | {"all"}:
        rule = f"is the split of no query (there are: {', '.join(sorted(splits)) or 'none'})"
        value = quote(manifest.report_split)
        reader.fault(FILE, 0, "report_split", value, rule, "Name one of them, or leave the field out")


def _system(reader: FolderReader, text: str) -> str:
    """What is used today, as a command would name it; empty, and a fault, for what no file may name."""
    try:
        return Naming(FILE, reader.folder).contender(text) if text else ""
    except ConfigError:
        rule = f"is no system, no strategy and no weights file or run in the folder ({RULE})"
        reader.fault(FILE, 0, "system", quote(text), rule, "Correct it, or name what you use on the command line")
        return ""


def _embedder(reader: FolderReader, name: object) -> str:
    """What makes the vectors, as a command would name it; empty, and a fault, for what no file may name."""
    if name is None:
        return ""
    rule = f"is no embedder (there are: {', '.join(EMBEDDERS)}, recorded:MODEL)"
    try:
        if isinstance(name, str) and (name in EMBEDDERS or name.startswith("recorded:")):
            return Naming(FILE, reader.folder).embedder(name)
    except ConfigError as error:
        rule = str(error)
    reader.fault(FILE, 0, "embedder", quote(name), rule, "Correct it, or leave it out")
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


def holds_hash(folder: Path, name: str) -> bool:
    """Whether dataset.json holds the hash of a file, which then cannot change without it."""
    files = (FolderReader(folder).json_object(FILE) or {}).get("files")
    return isinstance(files, dict) and name in files


def without_counts(record: Mapping[str, object]) -> dict[str, object]:
    """A record without `counts`, which nothing reads, for files whose lines are others now."""
    return {key: value for key, value in record.items() if key != "counts"}


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
    write_text(folder / FILE, canonical({**without_counts(record), "files": files}))
    return digests


def _check_hashes(reader: FolderReader, files: object) -> None:
    if files is not None and not isinstance(files, dict):
        rule = "must be an object of file names and SHA-256 hashes"
        reader.fault(FILE, 0, "files", quote(files), rule, 'Write it as {"qrels.txt": "..."}')
        return
    rule = "must be the plain name of a file in the folder"
    for name in files or ():
        if not _is_plain(name):
            reader.fault(FILE, 0, _field(name), "", rule, "Remove the path")
    command = f"steelyard check {shlex.quote(visible(str(reader.folder)))} --accept"
    remedy = f"Restore the file; if this was on purpose: {command}"
    for name, digest in _differing(reader, files).items():
        rule = f"differs from the file's SHA-256 {digest[:DIGITS]}" if digest else "names a file that is missing"
        said = quote(str(files[name])[:DIGITS]) if files and digest else ""
        reader.fault(FILE, 0, _field(name), said, rule, remedy)


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
    return f"files[{quote(name)}]"


def starter() -> Path:
    """The folder of the starter data set, which is small."""
    return _shipped("starter")


def workshop() -> Path:
    """The folder of the workshop data set, whose labels were pooled."""
    return _shipped("workshop")


def _shipped(name: str) -> Path:
    """In the package, or beside it in a checkout."""
    inside = Path(str(resources.files("steelyard_eval").joinpath(name)))
    return inside if inside.is_dir() else Path(__file__).parents[3] / "qrels" / name
