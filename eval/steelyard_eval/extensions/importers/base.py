"""What an importer is, and what it brings: the parts of a data set, as plain records.

An importer reads the store of one program. It is a value with a name and two functions, and it sees the store only
through `ForeignStore`, which reads and never writes, runs or follows anything. Most stores are tables, so most of
an importer is a form: the fields of an entry, each with the column that stands for it, see `picked`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import quote
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON
from steelyard.extensions.secrets import loggable_text
from steelyard.feedback import SCHEMA_VERSION
from steelyard.systems import SYSTEMS
from steelyard_eval.common.formatting import counted
from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.importers.database import Database
from steelyard_eval.extensions.importers.source import ForeignStore

Record = dict[str, object]
Row = Mapping[str, Any]
Scored = tuple[str, float | None]  # An entry of a list with its score; None where the program kept none
BROKEN = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)
"""What reading a store raises whose values have other types than its program writes."""
FORMS: dict[str, dict[str, str]] = STRICT_JSON.decode(
    resources.files(__package__).joinpath("forms.json").read_text("utf-8")
)
"""What -> the fields of a record, each with the column of the program that stands for it."""
WORDS: dict[str, Any] = STRICT_JSON.decode(resources.files(__package__).joinpath("words.json").read_text("utf-8"))
"""Names that other programs have for one thing, best first, and what is said of what is left out or odd."""
_UNFIT = re.compile(r"[\s%\x00-\x1f\x7f-\x9f]")


@dataclass
class Imported:
    """The parts of a data set that a store holds.

    `entries`, `queries` and `feedback` are lines of the files of these names; fields that none of ours stand for
    are kept as they are, and times may be ISO 8601 texts or seconds UTC. `qrels` has grades 0..4 by query and
    entry, `runs` what the program itself returned: name -> query -> list of (entry, score), best first. `vectors`
    are by model and entry, and `recipe` is the template of the text that they stand for. `system`, as
    `name:profile` or `name`, ranks as the program does; empty where none does. `notes` say what was found beside
    entries, and what could not be carried over, a sentence each.
    """

    entries: list[Record] = field(default_factory=list)
    queries: list[Record] = field(default_factory=list)
    qrels: dict[str, dict[str, int]] = field(default_factory=dict)
    runs: dict[str, dict[str, list[Scored]]] = field(default_factory=dict)
    feedback: list[Record] = field(default_factory=list)
    vectors: dict[str, dict[str, NDArray[np.float32]]] = field(default_factory=dict)
    recipe: str = "{title}\n{text}"
    system: str = ""
    notes: list[str] = field(default_factory=list)

    def note(self, count: int, one: str, rest: str, many: str = "") -> None:
        """Note what was found so many times; nothing where it never was."""
        if count:
            self.notes.append(f"{counted(count, one, many)} {rest}")

    def left_out(self, db: Database) -> None:
        """Note the rows of tables that are not carried over, and why; and which generation wrote the store."""
        for table, what in WORDS["left_out"].items():
            self.note(sum(1 for _ in db.rows(table)), *what)
        self.show(db.columns)

    def show(self, columns: Mapping[str, Iterable[str]]) -> None:
        """Propose the program's newest generation, where the store has columns that only that writes."""
        newest, needed = f"{self.system}:newest", WORDS["newest"].get(self.system, {})
        if newest in SYSTEMS and any(
            table in columns and {*names} <= {*columns[table]} for table, names in needed.items()
        ):
            self.notes.append(f"the newest generation of the program wrote it; search it as {newest}")

    def add(self, rows: Iterable[Row], entry_of: Callable[[Any], Record]) -> None:
        """Add the entry of each row; a row from which none can be made is left out, and counted in a note."""
        before, broken = len(self.entries), list[Exception]()
        for row in rows:
            try:
                self.entries.append(entry_of(row))
            except BROKEN as error:
                broken.append(error)
        if broken and len(self.entries) == before:
            raise broken[0]  # not a damaged row, but another program's table
        first = quote(str(broken[0]), 80) if broken else ""
        self.note(len(broken), "row", f"left out, without the values of an entry ({first})")

    def vector(self, model: object, id_: str, vector: NDArray[np.float32] | None) -> None:
        """Keep the vector of an entry, where it has one."""
        if vector is not None:
            self.vectors.setdefault(identifier(str(model)), {})[id_] = vector

    def impression(
        self, time: object, query: str, client: str, text: object, shown: Iterable[str], acts: Iterable[Record]
    ) -> None:
        """Add what a client was shown for a query, best first, and the acts on it."""
        at = seconds(time)
        record: Record = {
            "schema_version": SCHEMA_VERSION,
            "timestamp": None if at is None else format_time(at),
            "query_id": query,
            "user_query": loggable_text(str(text or "")),
            "client_id": client,
            "policy": self.system,
            "hits": [{"object_id": entry, "position": place} for place, entry in enumerate(shown, 1)],
            "actions": list(acts),
        }
        self.feedback.append(record)


@dataclass(frozen=True)
class Importer:
    """One kind of store: what the command line calls it, and what it reads, in a few words, for `import --list`.

    `matches` is whether a source is of this kind, decided by names of files and tables; `read` gives the parts of
    the data set, or DataError where the store is damaged. `homes` are the places where the program keeps its
    store, best first, from the environment; they need not exist.
    """

    name: str
    about: str
    matches: Callable[[ForeignStore], bool]
    read: Callable[[ForeignStore], Imported]
    homes: Callable[[Mapping[str, str]], Iterable[Path]]


def importer(
    matches: Callable[[ForeignStore], bool],
    homes: Callable[[Mapping[str, str]], Iterable[Path]] = lambda environ: (),
) -> Callable[[Callable[[ForeignStore], Imported]], Importer]:
    """Make an importer of the function below: its name is the kind's, its first sentence says what it reads."""
    return lambda read: Importer(read.__name__, f"{read.__doc__}".partition(". ")[0], matches, read, homes)


def picked(row: Row, form: str) -> Record:
    """The fields of a form, each with the value of its column; None for a column that is not there."""
    return {field: row.get(column) for field, column in FORMS[form].items()}


def grouped(rows: Iterable[Row], column: str, form: str) -> dict[str, list[Record]]:
    """Rows as records of a form, by the value of a column: the relations that begin at each entry."""
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(filled(picked(row, form)))
    return groups


def identifier(name: str) -> str:
    """An id from a name: blanks, control characters and % as %XX of their UTF-8, so that no two names meet."""
    return _UNFIT.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def first(record: Row, *names: str) -> Any:  # noqa: ANN401 -- any value
    """The first of these values that is given."""
    return next((record[name] for name in names if record.get(name) not in (None, "", [])), None)


def filled(record: Row) -> Record:
    """The record without what is None, an empty text or an empty list: such fields are not given."""
    return {name: value for name, value in record.items() if value is not None and value != "" and value != []}
