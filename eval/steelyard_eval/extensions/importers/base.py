"""What an importer is, and what it brings: the parts of a data set, as plain records.

An importer reads the store of one program. It is a value with a name and two functions, and it sees the store only
through `ForeignStore`, which reads and never writes, runs or follows anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import shown
from steelyard.base.fields import END_OF_TIME, format_time, parse_number, parse_time
from steelyard_eval.common.markup import counted
from steelyard_eval.extensions.importers.postgres import LiveDatabase
from steelyard_eval.extensions.importers.source import ForeignStore

Record = dict[str, object]
Scored = tuple[str, float | None]
"""An entry of a list with its score; None where the program kept none."""
BROKEN = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)
"""What reading a store raises whose values have other types than its program writes."""


@dataclass
class Imported:
    """The parts of a data set that a store holds.

    Attributes
    ----------
    entries : list of dict
        Lines of corpus.jsonl: the fields of an entry, others are kept as they are. Times may be ISO 8601 texts or
        seconds UTC.
    queries : list of dict
        Lines of queries.jsonl.
    qrels : dict
        query -> entry -> grade 0..4.
    runs : dict
        name -> query -> list of (entry, score), best first: what the program itself returned.
    feedback : list of dict
        Lines of feedback.jsonl.
    vectors : dict
        model -> entry -> vector.
    recipe : str
        The template of the text that the vectors stand for.
    system : str
        The system, as `name:profile` or `name`, that ranks as the program does; empty where none does.
    notes : list of str
        What was found beside entries, and what could not be carried over, a sentence each.
    """

    entries: list[Record] = field(default_factory=list)
    queries: list[Record] = field(default_factory=list)
    qrels: dict[str, dict[str, int]] = field(default_factory=dict)
    runs: dict[str, dict[str, list[Scored]]] = field(default_factory=dict)
    feedback: list[Record] = field(default_factory=list)
    vectors: dict[str, dict[str, NDArray[np.float32]]] = field(default_factory=dict)
    recipe: str = ""
    system: str = ""
    notes: list[str] = field(default_factory=list)

    def note(self, count: int, one: str, rest: str, many: str = "") -> None:
        """Note what was found so many times; nothing where it never was."""
        if count:
            self.notes.append(f"{counted(count, one, many)} {rest}")

    def add(self, rows: Iterable[Mapping[str, object]], entry_of: Callable[[Any], Record]) -> None:
        """Add the entry of each row; a row from which none can be made is left out, and counted in a note."""
        before, broken = len(self.entries), list[Exception]()
        for row in rows:
            try:
                self.entries.append(entry_of(row))
            except BROKEN as error:
                broken.append(error)
        if broken and len(self.entries) == before:
            raise broken[0]  # not a damaged row, but another program's table
        first = shown(str(broken[0]), 80) if broken else ""
        self.note(len(broken), "row", f"left out, without the values of an entry ({first})")


@dataclass(frozen=True)
class LiveTables:
    """How a kind is read from a database that is running: the tables that it has to have, and the reading."""

    tables: tuple[str, ...]
    columns: tuple[str, ...]
    read: Callable[[LiveDatabase], Imported]

    def matches(self, database: LiveDatabase) -> bool:
        """Whether the first table is there with these columns, and the others."""
        have = database.columns
        return set(self.tables) <= set(have) and set(self.columns) <= set(have[self.tables[0]])


@dataclass(frozen=True)
class Importer:
    """One kind of store.

    Attributes
    ----------
    name : str
        What the command line calls it.
    about : str
        What it reads, in a few words, for `steelyard import --list`.
    matches : callable
        Whether a source is of this kind, decided by names of files and tables.
    read : callable
        The parts of the data set; DataError where the store is damaged.
    homes : callable
        The places where the program keeps its store, best first, from the environment; they need not exist.
    live : LiveTables, optional
        How it is read from a PostgreSQL database.
    """

    name: str
    about: str
    matches: Callable[[ForeignStore], bool]
    read: Callable[[ForeignStore], Imported]
    homes: Callable[[Mapping[str, str]], Iterable[Path]] = lambda environ: ()
    live: LiveTables | None = None


_UNFIT = re.compile(r"[\s%\x00-\x1f\x7f-\x9f]")


def identifier(name: str) -> str:
    """An id from a name: white space, control characters and % as %XX of their UTF-8, so that no two names meet.

    >>> identifier("Seat holds")
    'Seat%20holds'
    """
    return _UNFIT.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def moment(seconds: object) -> str:
    """A time in seconds UTC as ISO 8601; empty for what is no time.

    >>> moment(0), moment(None), moment("soon")
    ('1970-01-01T00:00:00Z', '', '')
    """
    try:
        return format_time(parse_time(seconds))
    except (ValueError, OverflowError):
        return ""


_CALENDAR = {4: "%Y", 8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Digits of a date that is written without marks, by how many there are; others are seconds, or parts of them."""
LONGEST_TIME = 64
"""Characters of a time."""
_YEARS = range(1900, 2101)
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?!\d)(.*)", re.DOTALL)
_ZONE = re.compile(r"\s*(?:UTC|GMT)$|\s+(?=[+-]\d\d:?\d\d$)")


def time_of(value: object) -> object:
    """A time in a form that `parse_time` reads, if it can be read in one way only; else the value as it is.

    A month stands for its first day. Numbers beyond the year 9999 are milliseconds, or still smaller parts.

    >>> time_of("2026/3/1 10:00 UTC"), time_of(1772323200000), time_of("20260301"), time_of("01/03/2026")
    ('2026-03-01 10:00+00:00', 1772323200.0, '2026-03-01T00:00:00', '01/03/2026')
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value).strip()
    if len(text) > LONGEST_TIME:
        return value
    if text.isascii() and text.isdigit() and (form := _CALENDAR.get(len(text))):
        try:
            moment = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            moment = None
        if moment and moment.year in _YEARS:
            return moment.isoformat().removesuffix("+00:00")
    try:
        seconds = parse_number(text)
    except ValueError:
        dated = _DATE.fullmatch(text)
        if dated is None:
            return value
        year, month, day, rest = dated.groups(default="1")
        rest = _ZONE.sub(lambda match: "+00:00" if match[0].strip() else "", rest)
        return f"{year}-{int(month):02}-{int(day):02}{rest}"
    if not isinstance(value, str) and abs(seconds) < END_OF_TIME:
        return value
    while abs(seconds) >= END_OF_TIME:
        seconds /= 1000
    return seconds


def filled(record: Mapping[str, object]) -> Record:
    """The record without what is None, an empty text or an empty list: such fields are not given."""
    return {name: value for name, value in record.items() if value is not None and value != "" and value != []}
