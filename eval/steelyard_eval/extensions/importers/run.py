"""Reads a store into a folder, brings the folder up to date, or loads the store as a data set in memory."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, MachineError, beside, nearest, shown
from steelyard.base.files import STRICT_JSON, canonical, write_text
from steelyard.base.inputs import open_regular
from steelyard.stores.opened import is_address
from steelyard_eval.common.process import state_folder
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.folder import fault_message, has_corpus, read_folder
from steelyard_eval.datasets.in_memory import MemoryReader
from steelyard_eval.datasets.parts import assemble
from steelyard_eval.export import TARGETS
from steelyard_eval.extensions.importers.base import BROKEN, Importer
from steelyard_eval.extensions.importers.benchmark import IR_DATASETS
from steelyard_eval.extensions.importers.kinds import importers
from steelyard_eval.extensions.importers.postgres import connected
from steelyard_eval.extensions.importers.source import ForeignStore, Options
from steelyard_eval.extensions.importers.write import (
    ABOUT,
    CORPUS,
    FolderFiles,
    check_target,
    files_of,
    moved_entries,
    write_folder,
)

DEFAULTS = Options()
Clock = Callable[[], float]
LARGEST_OWN = 2**20
"""Bytes; a larger file is none that Steelyard writes without entries."""
_EXPORT = re.compile(r"# strategy: [^\n]*\n# follows: ([^\n]*)\n")
"""How an export begins that is not JSON."""


@dataclass(frozen=True)
class Import:
    """What an import did: the kind and the place that it read, and the folder that it wrote to.

    `counts` are those of entries, queries, labels, runs and impressions that are not 0, `models` those whose
    vectors were carried over; `notes` say what was found beside that, and what could not be carried over. An
    import that finds nothing new leaves the folder as it is, and has not `changed` it. `moved` is how many
    entries were added, removed and changed, in words; empty where none was, and of a new folder.
    """

    kind: str
    source: str
    folder: Path
    counts: dict[str, int]
    models: tuple[str, ...]
    notes: tuple[str, ...]
    changed: bool
    moved: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        plain = {"folder": str(self.folder), "models": list(self.models), "notes": list(self.notes)}
        return {**asdict(self), **plain}


def import_store(
    source: str | Path,
    folder: str | Path,
    kind: str | None = None,
    options: Options = DEFAULTS,
    clock: Clock = time.time,
) -> Import:
    """Read a store into a new folder, or bring a folder up to date that an import made.

    `source` is a file or folder, the address of a PostgreSQL database, or the name of a kind, whose program's own
    place is then looked up; `kind` is by default the first that recognises it. `options` say what cannot be seen
    in the source. `clock` gives the time in seconds UTC: later dates are not taken for the clock of the data set.

    Raises ConfigError for an unknown kind, a source that no importer recognises, and a folder that is something
    else, DataError for a damaged store.
    """
    target = Path(folder)
    old = check_target(target)
    importer, place = _found(source, kind, options)
    files = _read(importer, place, clock, old)
    if not files.texts[CORPUS]:
        told = "; ".join(files.notes) or "it is empty"
        raise DataError(f"{shown(str(source), PATH_WIDTH)} holds no entry that can be imported: {told}")
    moved = moved_entries(old, files)
    changed = write_folder(target, files)
    remember(target, _source(importer, place))
    models = tuple(name.split(".", 1)[1].removesuffix(".f16.npy") for name in files.arrays)
    return Import(importer.name, place.place, target, files.counts, models, tuple(files.notes), changed, moved)


def refresh(folder: str | Path) -> Import:
    """Import again from the store that dataset.json names, if this user imported it; see `import_store`.

    A folder may come from a stranger, and its dataset.json may name any path.
    """
    old = check_target(Path(folder))
    if old is None:
        raise ConfigError(f"{shown(str(folder), PATH_WIDTH)} does not exist; make it with steelyard import")
    source = old.json(ABOUT)["source"]
    if not isinstance(source, dict) or not all(isinstance(source.get(key), str) for key in ("kind", "path")):
        raise DataError(f"{old}: {ABOUT} has a broken source; import again by steelyard import SOURCE {old}")
    own = _memory_of(Path(folder))
    if not own.is_file() or own.read_text(encoding="utf-8") != canonical(source):
        place = shown(source["path"], PATH_WIDTH)
        raise ConfigError(
            f"{old}: you did not import it here from {place} yourself; if that is the store you mean, run "
            f"steelyard import {place} {old}"
        )
    options = {name: value for name, value in source.items() if name not in ("kind", "path")}
    return import_store(source["path"], folder, source["kind"], Options(**options))


def remember(folder: Path, source: Mapping[str, object]) -> None:
    """Keep that this user imported the source into the folder; a home that cannot be written is no error."""
    place = _memory_of(folder)
    with suppress(OSError, MachineError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, canonical(dict(source)))


def _memory_of(folder: Path) -> Path:
    """The file of the user's state that says what was imported into a folder."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return state_folder() / "imports" / f"{name}.json"


def load_store(
    source: str | Path, kind: str | None = None, options: Options = DEFAULTS, clock: Clock = time.time
) -> Dataset:
    """The data set that a store holds, in memory; see `import_store`."""
    importer, place = _found(source, kind, options)
    files = _read(importer, place, clock)
    reader = MemoryReader({name: text.encode() for name, text in files.texts.items()}, files.arrays)
    report = assemble(reader, read_folder(reader), log=False)
    if report.dataset is None:
        raise DataError(fault_message(str(place), report.faults))
    return replace(report.dataset, notices=(*files.notes, *report.dataset.notices), in_memory=True)


def open_store(source: str | Path) -> Dataset:
    """The data set that a store holds, see `load_store`; DataError where there is nothing of this name."""
    named = str(source) in importers() or str(source).startswith(IR_DATASETS)
    found = named or is_address(source) or Path(source).exists()
    return load_store(source) if found else load(source)


def _read(importer: Importer, place: ForeignStore, clock: Clock, old: ForeignStore | None = None) -> FolderFiles:
    """The files of what the store holds; DataError for values that no such program writes."""
    name = place.path.stem if place.path.is_file() else place.path.name
    about = {
        "name": f"{importer.name} {name}",
        "description": f"imported from {importer.about}",
        "source": _source(importer, place),
    }
    try:
        if is_address(place.address) and importer.live:
            with connected(place.address) as database:
                imported = importer.live.read(database)
        else:
            imported = importer.read(place)
        return files_of(imported, about, old, clock())
    except BROKEN as error:
        reason = shown(f"{type(error).__name__}: {error}", 200)
        raise DataError(f"{place} is damaged, or not of the kind {importer.name} ({reason}); restore it") from None


def _source(importer: Importer, place: ForeignStore) -> dict[str, object]:
    return {"kind": importer.name, "path": place.place, **place.options.to_json()}


def _found(source: str | Path, kind: str | None, options: Options) -> tuple[Importer, ForeignStore]:
    """The importer and the place; a source that is the name of a kind is looked up where its program keeps it."""
    known = importers()
    if kind is not None and kind not in known:
        raise ConfigError(f"unknown kind {shown(kind)}{nearest(kind, known)}; see steelyard import --list")
    if is_address(source):
        return _of_database(str(source), known, kind, options)
    path = Path(source).expanduser()
    if not path.exists() and str(source) in known:
        return _at_home(known[str(source)], options)
    has_id = str(source).startswith(IR_DATASETS)
    if not path.exists() and not has_id:
        word = kind is None and path.name == str(source) and not path.suffix  # else a file or a folder is meant
        close = nearest(str(source), known) if word else beside(path) or "; name a file or a folder that does"
        raise ConfigError(f"{shown(str(source), PATH_WIDTH)} does not exist{close}")
    place = ForeignStore(path if has_id else path.absolute(), options)
    if kind is not None:
        return known[kind], place
    if told := _told_of_own(path):
        raise ConfigError(told)
    if path.is_dir() and has_corpus(path) and (path / "queries.jsonl").exists() and not (path / "qrels").is_dir():
        raise ConfigError(f"{shown(str(source), PATH_WIDTH)} is a data set already: steelyard check it")
    damage: DataError | None = None
    for importer in known.values():
        try:
            if importer.matches(place):
                return importer, place
        except DataError as error:  # not to be read as this kind; perhaps it is another
            damage = damage or error
    raise damage or ConfigError(
        f"{place} is no store that is known; name its kind with --kind: {', '.join(known)}"
    )


def _of_database(
    address: str, known: Mapping[str, Importer], kind: str | None, options: Options
) -> tuple[Importer, ForeignStore]:
    """The importer whose tables a database has."""
    live = {name: importer.live for name, importer in known.items() if importer.live}
    place = ForeignStore(Path(address.rpartition("/")[2].partition("?")[0]), options, address)
    if kind is not None and kind not in (*live, "steelyard"):
        raise ConfigError(f"{kind} is not read from a database; that can be {', '.join((*live, 'steelyard'))}")
    with connected(address) as database:
        if database.ours and kind in (None, "steelyard"):
            return known["steelyard"], place
        for name, tables in live.items():
            if kind in (None, name) and database.holds(tables.needed):
                return known[name], place
    looked = "; ".join(f"{name}: {', '.join(tables.needed)}" for name, tables in live.items())
    raise ConfigError(f"{place} has not the tables of a store that is known ({looked}); name another database")


def _at_home(importer: Importer, options: Options) -> tuple[Importer, ForeignStore]:
    places = list(importer.homes(os.environ))
    for path in places:
        if path.exists() and importer.matches(store := ForeignStore(path.absolute(), options)):
            return importer, store
    looked = ", ".join(map(str, places)) or "nowhere: it has no place of its own"
    raise ConfigError(f"no store of {importer.name} is found (looked at {looked}); name its file or folder")


def _told_of_own(path: Path) -> str:
    """What a file is that Steelyard writes without entries, and which command takes it; empty for any other."""
    text, file, record = "", shown(str(path)), dict[str, Any]()
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= LARGEST_OWN:
            with open_regular(path) as stream:
                text = stream.read().decode("utf-8-sig")
        record = STRICT_JSON.decode(text) if text.lstrip()[:1] == "{" else {}
    about, begin = record.get("about"), _EXPORT.match(text)
    follows = about.get("follows") if isinstance(about, dict) else begin[1] if begin else None
    for name in (name for name, target in TARGETS.items() if target.follows == follows):
        return (
            f"{file} is what steelyard export --to {name} wrote, a configuration for {name} without entries; "
            f"give it to {name}, and search here with the weights file that it was made from"
        )
    if {"strategy", "retrievers", "schema_version"} <= record.keys():
        return (
            f"{file} is a weights file of Steelyard and holds no entries; use it by steelyard search VAULT QUERY "
            f"--weights {file}, or translate it by steelyard export {file} --to TARGET"
        )
    return ""
