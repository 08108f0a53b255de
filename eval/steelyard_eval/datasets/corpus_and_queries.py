"""Reads the corpus and the queries from JSON Lines, and graded judgments in TREC's columns or BEIR's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from steelyard.base.errors import ConfigError, Fault, shown
from steelyard.base.fields import Reader, parse_time, read_flag, read_text, read_texts
from steelyard.memory.entry import FIELDS, Entry, read_entry, read_fields
from steelyard.memory.query import EVERYTHING, MAX_WORDS, Filters, Query, count_words, is_blank
from steelyard_eval.datasets.file_reader import FolderReader, hinted, meant

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
QUERY_FIELDS: dict[str, Reader] = {
    **dict.fromkeys(("id", "text", "intent", "category", "group", "domain", "split"), read_text),
    "asked_at": parse_time,
    "tags": read_texts,
    "answerable": read_flag,
}
Item = TypeVar("Item", Entry, Query)
Reading = Callable[[Mapping[str, object], str, int], tuple[Item | None, list[Fault]]]


@dataclass(frozen=True, slots=True)
class JsonLines(Generic[Item]):
    """The items of one file.

    `rows` counts lines, including broken ones, because vector files have a row for each; `lines` has the first
    line of each id, even when the rest of that line has faults. `with_unknown` lines have fields that the format
    has not, which are `unknown`.
    """

    file: str
    items: tuple[Item, ...]
    lines: Mapping[str, int]
    rows: int
    unknown: frozenset[str]
    with_unknown: int


def read_entries(reader: FolderReader, renamed: Mapping[str, str] | None = None) -> JsonLines[Entry] | None:
    """Read corpus.jsonl[.gz]; None when there is none to read. `renamed` maps foreign field names."""
    return _read_table(reader, CORPUS, read_entry, frozenset(FIELDS), renamed or {})


def read_queries(reader: FolderReader, renamed: Mapping[str, str] | None = None) -> JsonLines[Query] | None:
    """Read queries.jsonl[.gz]; None when there is none to read. An empty text is a fault.

    A folder of our own with neither queries nor labels has none: it can be indexed, and judging writes the first.
    """
    others = (QUERIES, f"{QUERIES}.gz", "queries.json", "queries.csv", "queries.tsv", "queries.txt")
    corpus = reader.has(CORPUS) or reader.has(f"{CORPUS}.gz")
    if corpus and renamed is None and not any(map(reader.has, (*others, "qrels.txt", "qrels.tsv"))):
        return JsonLines(QUERIES, (), {}, 0, frozenset(), 0)
    known = frozenset(QUERY_FIELDS) | {"filter"}
    return _read_table(reader, QUERIES, read_query, known, renamed or {})


def read_query(
    record: Mapping[str, object], file: str = "query", line: int = 0
) -> tuple[Query | None, list[Fault]]:
    """Build a query from a JSON object with its optional `filter`; None, with faults, when it is wrong."""
    values, faults = read_fields(record, QUERY_FIELDS, ("id", "text"), file, line)
    filters, text = EVERYTHING, values.get("text", "x")
    if (scope := record.get("filter")) is not None:
        try:
            filters = Filters.of(scope if isinstance(scope, Mapping) else {"filter": scope})
        except ConfigError as error:
            faults.append(Fault(file, line, "filter", shown(scope), str(error), 'Write {"field": "value"}'))
    if is_blank(text):
        faults.append(Fault(file, line, "text", shown(text), "must not be empty", "Write the query"))
    elif (words := count_words(text)) > MAX_WORDS:
        rule = f"has {words} words, and may have {MAX_WORDS}"
        faults.append(Fault(file, line, "text", shown(text), rule, "Shorten the query"))
    return (None, faults) if faults else (Query(**values, filters=filters), [])


def _read_table(
    reader: FolderReader, name: str, read: Reading[Item], known: frozenset[str], renamed: Mapping[str, str]
) -> JsonLines[Item] | None:
    file = reader.find(name)
    records = None if file is None else reader.records(file)
    if file is None or records is None:
        return None
    if not records and name == CORPUS:
        reader.fault(file, 0, "", "", "has no lines", "Add one JSON object per line")
    names = {key for _, raw in records for key in raw or ()}
    absent, foreign = {"id", "text"} - names - {*renamed.values()}, names - known - renamed.keys()
    for own in sorted(absent):
        if other := meant(own, foreign):
            rule = f"is in no line, and {shown(other, 40)} is"
            reader.fault(file, 0, own, "", rule, f"Rename {shown(other, 40)} to {own!r} in all lines")
            renamed = {**renamed, other: own}  # so that its lines have no further fault
    items: list[Item] = []
    lines: dict[str, int] = {}
    odd: list[frozenset[str]] = []
    for line, raw in records:
        if raw is None:
            continue
        # Foreign fields under our names; they replace fields that already have these names.
        record = {key: value for key, value in raw.items() if key not in renamed}
        record |= {new: raw[old] for old, new in renamed.items() if old in raw}
        item, faults = read(record, file, line)
        odd.append(frozenset(record.keys() - known))
        reader.faults += [hinted(fault, odd[-1]) for fault in faults]
        if item is not None:
            items.append(item)
        id_ = record.get("id")
        if isinstance(id_, str) and (first := lines.setdefault(id_, line)) != line:
            rule = f"is the id of line {first} already"
            reader.fault(file, line, "id", shown(id_), rule, "Give each line its own id")
    unknown = frozenset[str]().union(*odd)
    return JsonLines(file, tuple(items), lines, len(records), unknown, sum(map(bool, odd)))


GRADES = {-1: 0, 0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
"""Grades by the number that is written. TREC sets write -1 for "judged, not relevant"."""
COMMENT = "#"
"""How a comment begins."""
_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?%?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
"""What people write for a number: not a word that heads a column."""

TREC = ("query", "iteration", "entry", "grade")
BEIR = ("query", "entry", "grade")


@dataclass(frozen=True, slots=True)
class Qrels:
    """The judgments read so far: query -> entry -> grade. Ids of a table that is None are not checked."""

    reader: FolderReader
    queries: JsonLines[Query] | None
    entries: JsonLines[Entry] | None
    grades: dict[str, dict[str, int]] = field(default_factory=dict)

    def read(self, file: str) -> set[str]:
        """Add the judgments of a file and return the ids of its queries.

        The first line determines whether the file has three or four columns; a header of three is skipped, and so
        are comments.
        """
        named: set[str] = set()
        read = ((line, text.split()) for line, text in self.reader.lines(file) or [] if text is not None)
        lines = [(line, values) for line, values in read if not self._is_comment(values)]
        usual = BEIR if file.endswith(".tsv") else TREC
        columns = {3: BEIR, 4: TREC}.get(len(lines[0][1]) if lines else 0, usual)
        for line, values in lines:
            if len(values) != len(columns):
                text, rule = " ".join(values), f"must have {len(columns)} columns: {' '.join(columns)}"
                commas = text.count(",") >= len(BEIR) - 1 and len(values) == 1
                remedy = "Put blanks or tabs where it has commas" if commas else "Correct the line"
                self.reader.fault(file, line, "", shown(text), rule, remedy)
            elif line != lines[0][0] or not self._is_header(values):
                self._add(file, line, dict(zip(columns, values, strict=True)))
                named.add(values[0])
        return named

    def _is_comment(self, values: list[str]) -> bool:
        """Whether a line begins as a comment does, and is no judgment of an id that begins so."""
        if not values[0].startswith(COMMENT) or _holds(self.queries, values[0]):
            return False
        judges = len(values) in (len(BEIR), len(TREC)) and whole_number(values[-1]) is not None
        if not judges or values[0] == COMMENT:
            return True
        return self.entries is not None and not _holds(self.entries, values[-2])

    def _is_header(self, values: list[str]) -> bool:
        """Whether the first line heads columns: three words, none of them a number or an id that is known."""
        ids = _holds(self.queries, values[0]) or _holds(self.entries, values[1])
        return len(values) == len(BEIR) and not ids and not _NUMBER.fullmatch(values[-1])

    def _add(self, file: str, line: int, judgment: dict[str, str]) -> None:
        query, entry, written = judgment["query"], judgment["entry"], judgment["grade"]
        for name, id_, table in (("query", query, self.queries), ("entry", entry, self.entries)):
            # When no line of the table has an id, that is the fault to report, and not every judgment.
            if table is not None and table.lines and id_ not in table.lines:
                rule = f"is the id of no {name}"
                self.reader.fault(file, line, name, shown(id_), rule, "Add it, or remove the line")
        grade = GRADES.get(number) if (number := whole_number(written)) is not None else None
        if grade is None:
            rule = "must be an integer in 0..4, or -1 for not relevant"
            self.reader.fault(file, line, "grade", shown(written), rule, "Map the grades onto 0..4")
            return
        first = self.grades.setdefault(query, {}).setdefault(entry, grade)
        if first != grade:
            rule = f"contradicts grade {first} given before for query {shown(query)}, entry {shown(entry)}"
            self.reader.fault(file, line, "grade", shown(written), rule, "Keep one of the judgments")


def _holds(table: JsonLines[Entry] | JsonLines[Query] | None, id_: str) -> bool:
    return table is not None and id_ in table.lines


def whole_number(written: str) -> int | None:
    """The whole number that a text writes, also as 1.0 or 1e0; None for a fraction and for what is no number.

    >>> whole_number("1.0"), whole_number("-1"), whole_number("0.5"), whole_number("nan")
    (1, -1, None, None)
    """
    if not written.isascii() or "_" in written:
        return None
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
