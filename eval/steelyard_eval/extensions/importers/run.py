"""Reads a store into a folder, brings the folder up to date, or loads the store as a data set in memory."""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, MachineError, closest_file, nearest, quote
from steelyard.base.files import STRICT_JSON, canonical, write_text
from steelyard.embedders.embed import LSA
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import is_address
from steelyard.stores.sqlite import open_vault
from steelyard_eval.common.process import state_folder
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.assembly import assemble
from steelyard_eval.datasets.folder import fault_message, has_corpus, read_folder
from steelyard_eval.datasets.in_memory import MemoryReader
from steelyard_eval.extensions.importers.base import BROKEN, Imported, Importer, importer
from steelyard_eval.extensions.importers.benchmark import IR_DATASETS
from steelyard_eval.extensions.importers.source import ForeignStore, Options
from steelyard_eval.extensions.importers.write import ABOUT, FolderFiles, check_target, files_of, write_folder

DEFAULTS = Options()
Clock = Callable[[], float]
MODULES = ("sqlite_systems", "text_systems", "mem0_langgraph", "benchmark", "markdown", "table")
"""In the order in which a source is tried. To add a kind, add an `importer` to one, or name that of a package of
your own under the entry point `GROUP`."""
TABLE = "table"  # the kind whose columns are named by the user
GROUP = "steelyard.importers"
WEIGHTS, EXPORT = {"strategy", "retrievers", "schema_version"}, {"strategy", "follows", "target"}
"""Keys of a weights file, and those that an export of one has under `about`."""
LOOKED_AT = 65_536  # Bytes; a file of more is neither
ARCHIVED = (("status", "archived"), ("visibility", "archived"), ("archived", True))
"""What entries of programs have that these archived."""


@cache
def importers() -> dict[str, Importer]:
    """Every kind by name: ours, then those of installed packages."""
    modules = (vars(import_module(f"{__package__}.{name}")) for name in MODULES)
    ours = (value for values in modules for value in values.values() if isinstance(value, Importer))
    known = {importer.name: importer for importer in (*ours, steelyard)}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        importer = point.load()
        if importer.name in known:
            raise ConfigError(f"two importers are named {quote(importer.name)}; uninstall one of the packages")
        known[importer.name] = importer
    return known


@importer(lambda _: False)
def steelyard(place: ForeignStore) -> Imported:
    """Steelyard's own store in PostgreSQL, by its address. What this role may see; vectors of LSA stay behind."""
    with open_vault(place.address) as vault, vault.snapshot():
        records = (entry.to_json() for entry in vault.entries())
        imported = Imported(entries=[{**record.pop("extra", {}), **record} for record in records], recipe="")
        kept = [s for s, _ in vault.spaces() if s.layer == "text" and s.model.partition(":")[0] != LSA]
        for space in kept[:1]:
            imported.recipe = space.recipe
            imported.vectors[space.model] = dict(zip(*vault.vectors(space, EVERYTHING), strict=True))
        return imported


@dataclass(frozen=True)
class Import:
    """What an import did: the kind and the place that it read, and the folder that it wrote to.

    `counts` are those of entries, queries, labels, runs and impressions that are not 0, `models` those whose
    vectors were carried over; `notes` say what was found beside that, and what could not be carried over. An
    import that finds nothing new leaves the folder as it is, and has not `changed` it.
    """

    kind: str
    source: str
    folder: Path
    counts: dict[str, int]
    models: tuple[str, ...]
    notes: tuple[str, ...]
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**asdict(self), "folder": str(self.folder), "models": [*self.models], "notes": [*self.notes]}


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
    if "entries" not in files.counts:
        told = "; ".join(files.notes) or "it is empty"
        raise DataError(f"{quote(str(source), PATH_WIDTH)} holds no entry that can be imported: {told}")
    changed = write_folder(target, files)
    with suppress(OSError, MachineError):  # a home that cannot be written is no error
        _memory_of(target).parent.mkdir(parents=True, exist_ok=True)
        write_text(_memory_of(target), canonical(_source(importer, place)))
    models = tuple(name.split(".", 1)[1].removesuffix(".f16.npy") for name in files.arrays)
    return Import(importer.name, place.place, target, files.counts, models, tuple(files.notes), changed)


def refresh(folder: str | Path) -> Import:
    """Import again from the store that dataset.json names, if this user imported it; see `import_store`.

    A folder may come from a stranger, and its dataset.json may name any path.
    """
    old, own = check_target(Path(folder)), _memory_of(Path(folder))
    source = old.json(ABOUT)["source"] if old is not None else {}
    if not own.is_file() or own.read_text(encoding="utf-8") != canonical(source):
        where = quote(str(folder), PATH_WIDTH)
        raise ConfigError(f"{where} was not imported here; name its store: steelyard import SOURCE FOLDER")
    options = {name: value for name, value in source.items() if name not in ("kind", "path")}
    return import_store(source["path"], folder, source["kind"], Options(**options))


def _source(importer: Importer, place: ForeignStore) -> dict[str, object]:
    given = {name: value for name, value in asdict(place.options).items() if value}
    return {"kind": importer.name, "path": place.place, **given}


def _memory_of(folder: Path) -> Path:
    """The file of the user's state that says what was imported into a folder."""
    return state_folder() / "imports" / f"{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()}.json"


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
    named = str(source) in importers() or str(source).startswith(IR_DATASETS) or is_address(source)
    return load_store(source) if named or Path(source).exists() else load(source)


def _read(importer: Importer, place: ForeignStore, clock: Clock, old: ForeignStore | None = None) -> FolderFiles:
    ours = importer.read.__module__.startswith(f"{__package__}.") and importer.name != TABLE
    if ours and (place.options.columns or place.options.sql):
        raise ConfigError(
            f"{importer.name} names its fields itself: leave out --map and sql=..., which are for --kind {TABLE}"
        )
    name = place.path.stem if place.path.is_file() else place.path.name
    about = {
        "name": f"{importer.name} {name}",
        "description": f"imported from {importer.about}",
        "source": _source(importer, place),
    }
    try:
        imported = importer.read(place)
        archived = sum(any(entry.get(name) == value for name, value in ARCHIVED) for entry in imported.entries)
        rest = "carried over as others: the program hides them, searches here do not"
        imported.note(archived, "archived entry is", rest, "archived entries are")
        if place.options.model and imported.vectors:
            imported.vectors = {place.options.model: max(imported.vectors.values(), key=len)}
        return files_of(imported, about, old, clock())
    except BROKEN as error:
        reason = quote(f"{type(error).__name__}: {error}", 200)
        raise DataError(f"{place} is damaged, or not of the kind {importer.name} ({reason}); restore it") from None


def _is_ours(text: str) -> bool:
    """Whether the text of a file is that of a weights file, or of an export of one."""
    comment, _, rest = text.partition(" strategy: ")
    if comment in ("#", "--"):
        return rest.partition("\n")[2].startswith(f"{comment} follows: ")
    with suppress(ValueError, RecursionError):
        record = STRICT_JSON.decode(text)
        if isinstance(record, dict):
            about = record.get("about")
            return record.keys() >= WEIGHTS or (isinstance(about, dict) and about.keys() >= EXPORT)
    return False


def _found(source: str | Path, kind: str | None, options: Options) -> tuple[Importer, ForeignStore]:
    """The importer and the place; a source that is the name of a kind is looked up where its program keeps it."""
    known, named, path = importers(), str(source), Path(source).expanduser()
    if kind is not None and kind not in known:
        raise ConfigError(f"unknown kind {quote(kind)}{nearest(kind, known)}; see steelyard import --list")
    if is_address(source):
        if kind not in (None, steelyard.name):
            raise ConfigError(f"{kind} is not read from a database; name its file or folder")
        return steelyard, ForeignStore(Path(named.rpartition("/")[2].partition("?")[0]), options, named)
    if named.startswith(IR_DATASETS):
        return known["ir_datasets"], ForeignStore(Path(named), options)
    if not path.exists() and named in known:
        places = list(known[named].homes(os.environ))
        stores = (ForeignStore(place.absolute(), options) for place in places if place.exists())
        if (store := next(filter(known[named].matches, stores), None)) is not None:
            return known[named], store
        looked = ", ".join(map(str, places)) or "nowhere: it has no place of its own"
        raise ConfigError(f"found no store of {named} (looked at {looked}); name its file or folder")
    if not path.exists():
        word = kind is None and path.name == named and not path.suffix  # else a file or a folder is meant
        close = nearest(named, known) if word else closest_file(path) or "; name a file or a folder that does"
        raise ConfigError(f"{quote(named, PATH_WIDTH)} does not exist{close}")
    place = ForeignStore(path.absolute(), options)
    if kind is not None:
        return known[kind], place
    if path.is_file() and _is_ours(place.head(path.name, LOOKED_AT)):
        raise ConfigError(
            f"{place} is a weights file of Steelyard, or an export of one, and holds no entries; use it with "
            "steelyard search --weights, or in the program it is for"
        )
    if path.is_dir() and has_corpus(path) and (path / "queries.jsonl").exists() and not (path / "qrels").is_dir():
        raise ConfigError(f"{quote(named, PATH_WIDTH)} is a data set already: steelyard check it")
    damage: DataError | None = None
    for one in known.values():
        try:
            if one.matches(place):
                return one, place
        except DataError as error:  # not to be read as this kind; perhaps it is another
            damage = damage or error
    raise damage or ConfigError(
        f"{place} is no store that is known; name its kind with --kind: {', '.join(known)}"
    )
