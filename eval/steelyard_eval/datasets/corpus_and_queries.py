"""Reads the corpus and the queries from JSON Lines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from steelyard.base.errors import ConfigError, Fault, quote
from steelyard.base.fields import Reader, parse_time, read_flag, read_text, read_texts
from steelyard.memory.entry import FIELDS, Entry, read_entry, read_fields
from steelyard.memory.query import EVERYTHING, MAX_WORDS, Filters, Query, count_words, is_blank
from steelyard.memory.words import STEMMERS
from steelyard_eval.datasets.file_reader import FolderReader, Record, hinted, meant

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
        return JsonLines(QUERIES, (), {}, rows=0, unknown=frozenset(), with_unknown=0)
    return _read_table(reader, QUERIES, read_query, frozenset({*QUERY_FIELDS, "filter"}), renamed or {})


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
            faults.append(Fault(file, line, "filter", quote(scope), str(error), 'Write {"field": "value"}'))
    if is_blank(text):
        faults.append(Fault(file, line, "text", quote(text), "must not be empty", "Write the query"))
    elif (words := count_words(text)) > MAX_WORDS:
        rule = f"has {words} words, and may have {MAX_WORDS}"
        faults.append(Fault(file, line, "text", quote(text), rule, "Shorten the query"))
    return (None, faults) if faults else (Query(**values, filters=filters), [])


def _read_table(
    reader: FolderReader, name: str, read: Reading[Item], known: frozenset[str], renamed: Mapping[str, str]
) -> JsonLines[Item] | None:
    file = reader.find(name)
    records = None if file is None else reader.records(file)
    if file is None or records is None:
        return None
    begin: list[Record] = []
    names = {*renamed.values()}
    while not (begin and {"id", "text"} <= names) and (first := next(records, None)):  # until both were seen
        begin.append(first)
        names |= (first[1] or {}).keys()
    if not begin and name == CORPUS:
        reader.fault(file, 0, "", "", "has no lines", "Add one JSON object per line")
    absent, foreign = {"id", "text"} - names, names - known - renamed.keys()
    for own in sorted(absent):
        if other := meant(own, foreign):
            rule = f"is in no line, and {quote(other, 40)} is"
            reader.fault(file, 0, own, "", rule, f"Rename {quote(other, 40)} to {own!r} in all lines")
            renamed = {**renamed, other: own}  # so that its lines have no further fault
    items: list[Item] = []
    lines: dict[str, int] = {}
    rows, with_unknown, unknown = 0, 0, set[str]()
    for line, raw in chain(begin, records):
        rows += 1
        if raw is None:
            continue
        # Foreign fields under our names; they replace fields that already have these names.
        record = {key: value for key, value in raw.items() if key not in renamed}
        record |= {new: raw[old] for old, new in renamed.items() if old in raw}
        item, faults = read(record, file, line)
        odd = record.keys() - known
        unknown |= odd
        with_unknown += bool(odd)
        reader.faults += [hinted(fault, odd) for fault in faults]
        if item is not None:
            items.append(item)
        id_ = record.get("id")
        if isinstance(id_, str) and (earlier := lines.setdefault(id_, line)) != line:
            rule = f"is the id of line {earlier} already"
            reader.fault(file, line, "id", quote(id_), rule, "Give each line its own id")
    return JsonLines(file, tuple(items), lines, rows, frozenset(unknown), with_unknown)


def read_languages(reader: FolderReader, value: object) -> tuple[str, ...]:
    """The languages of the entries by Snowball's names; none for mixed, and for what is a fault."""
    names = value.replace(",", " ").split() if isinstance(value, str) else []
    if value is not None and (not names or set(names) - {"mixed", *STEMMERS}):
        rule = f"must be mixed, or of {', '.join(STEMMERS)}"
        reader.fault("dataset.json", 0, "language", quote(value), rule, "Correct it")
        return ()
    return () if "mixed" in names else tuple(dict.fromkeys(names))
