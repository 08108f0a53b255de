"""Reads the corpus and the queries from JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from steelyard.base.errors import Fault, shown
from steelyard.memory.entry import FIELDS, Entry, read_entry
from steelyard.memory.query import MAX_WORDS, QUERY_FIELDS, Query, count_words, is_blank, read_query
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.fault_list import hinted, meant
from steelyard_eval.datasets.file_reader import FolderReader

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
Item = TypeVar("Item", Entry, Query)
Reading = Callable[[Mapping[str, object], str, int], tuple[Item | None, list[Fault]]]


@dataclass(frozen=True, slots=True)
class JsonLines(Generic[Item]):
    """The items of one file.

    Attributes
    ----------
    rows : int
        The number of lines, including broken ones, because vector files have a row for each.
    lines : mapping of str to int
        The first line of each id, even when the rest of that line has faults.
    unknown : frozenset of str
        Fields that the format does not have.
    with_unknown : int
        The number of lines with such fields.
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
    """Read queries.jsonl[.gz]; None when there is none to read. An empty text is a fault."""
    known = frozenset(QUERY_FIELDS) | {"filter"}
    return _read_table(reader, QUERIES, _read_full_query, known, renamed or {})


def _read_full_query(record: Mapping[str, object], file: str, line: int) -> tuple[Query | None, list[Fault]]:
    query, faults = read_query(record, file, line)
    text = record.get("text")
    if isinstance(text, str) and is_blank(text):
        faults.append(Fault(file, line, "text", shown(text), "must not be empty", "Write the query"))
    elif isinstance(text, str) and (words := count_words(text)) > MAX_WORDS:
        rule = f"has {words} words, and may have {MAX_WORDS}"
        faults.append(Fault(file, line, "text", shown(text), rule, "Shorten the query"))
    return (None if faults else query), faults


def _read_table(
    reader: FolderReader, name: str, read: Reading[Item], known: frozenset[str], renamed: Mapping[str, str]
) -> JsonLines[Item] | None:
    file = reader.find(name)
    records = None if file is None else reader.records(file)
    if file is None or records is None:
        return None
    if not records and name == CORPUS:
        reader.fault(file, 0, "", "", "has no lines", "Add one JSON object per line")
    renamed = {**renamed, **_misnamed(reader, file, [raw for _, raw in records if raw], known, renamed)}
    items: list[Item] = []
    lines: dict[str, int] = {}
    odd: list[frozenset[str]] = []
    for line, raw in records:
        if raw is None:
            continue
        record = _rename(raw, renamed)
        item, faults = read(record, file, line)
        foreign = frozenset(record.keys() - known)
        reader.faults += [hinted(fault, foreign) for fault in faults]
        _note_id(reader, file, line, record.get("id"), lines)
        if item is not None:
            items.append(item)
        odd.append(foreign)
    unknown = frozenset[str]().union(*odd)
    return JsonLines(file, tuple(items), lines, len(records), unknown, sum(map(bool, odd)))


def _misnamed(
    reader: FolderReader,
    file: str,
    records: Sequence[Mapping[str, object]],
    known: frozenset[str],
    renamed: Mapping[str, str],
) -> dict[str, str]:
    """A fault for `id` and `text` where all lines have them under another name; reading goes on by that name."""
    names = {name for record in records for name in record}
    misnamed: dict[str, str] = {}
    for field in ("id", "text"):
        other = meant(field, names - known - renamed.keys())
        if field in names or field in renamed.values() or other is None:
            continue
        count = sum(other in record for record in records)
        rule = f"is in no line, and {counted(count, 'line has', 'lines have')} {shown(other, 40)}"
        reader.fault(file, 0, field, "", rule, f"Rename {shown(other, 40)} to {field!r} in all lines")
        misnamed[other] = field
    return misnamed


def _rename(raw: dict[str, object], renamed: Mapping[str, str]) -> dict[str, object]:
    """Rename foreign fields to our names; they replace fields that already have these names."""
    kept = {name: value for name, value in raw.items() if name not in renamed}
    return kept | {new: raw[old] for old, new in renamed.items() if old in raw}


def _note_id(reader: FolderReader, file: str, line: int, identifier: object, lines: dict[str, int]) -> None:
    if not isinstance(identifier, str):
        return
    first = lines.setdefault(identifier, line)
    if first != line:
        rule = f"is the id of line {first} already"
        reader.fault(file, line, "id", shown(identifier), rule, "Give each line its own id")
