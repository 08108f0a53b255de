"""Assembles a data set from the parts that the reader of a format returns, with notices on what is odd in them.

What is odd is no fault: one line with a count for each kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steelyard.base.errors import shown
from steelyard.base.fields import format_time
from steelyard.memory.entry import FIELDS, Entry
from steelyard.memory.query import QUERY_FIELDS, Query
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.corpus_and_queries import Item, JsonLines
from steelyard_eval.datasets.dataset import LOGGED, Dataset, Report
from steelyard_eval.datasets.embeddings import read_vectors
from steelyard_eval.datasets.file_reader import FolderReader, meant
from steelyard_eval.datasets.groups import asked_again, asked_again_in_words, unit_numbers
from steelyard_eval.datasets.logs import check_log
from steelyard_eval.datasets.manifest import Manifest

Grades = Mapping[str, Mapping[str, int]]
_NAMES_SHOWN = 10
FAR = 365 * 86_400
"""Seconds by which a latest date that stands alone is ahead of the next."""


@dataclass(frozen=True)
class DatasetParts:
    """What the reader of a format returns; None for a table that could not be read."""

    manifest: Manifest
    entries: JsonLines[Entry] | None
    queries: JsonLines[Query] | None
    qrels: dict[str, dict[str, int]]
    notices: list[str]


def assemble(reader: FolderReader, parts: DatasetParts, log: bool) -> Report:
    """Read the vectors, collect the notices, and build the data set when there are no faults.

    With `log` the lines of a feedback log are checked; it may be long, and only learning reads it.
    """
    feedback = reader.find("feedback.jsonl", required=False)
    if feedback is not None and log:
        check_log(reader, feedback)
    entries, queries, manifest = parts.entries, parts.queries, parts.manifest
    vectors = read_vectors(reader, entries, queries, bool(manifest.imported))
    notes = list(parts.notices)
    if vectors.ignored:
        notes.append(f"{len(vectors.ignored)} .npy files have no name of the format and are ignored")
    for model, zeros in vectors.partial.items():
        have = counted(zeros, "entry has", "entries have")
        notes.append(
            f"{have} no recorded vector of {shown(model)}: keyword search finds them, vector search does not"
        )
    if entries is None or queries is None:
        return Report(reader.told(), tuple(notes), None)
    as_of, clock = _clock(manifest.as_of, entries.items, queries.items)
    notes += [*clock, *notices(entries, queries, parts.qrels, manifest.imported)]
    if reader.faults:
        return Report(reader.told(), tuple(notes), None)
    dataset = Dataset(
        name=manifest.name,
        path=reader.folder,
        description=manifest.description,
        licence=manifest.licence,
        as_of=as_of,
        recipe=manifest.recipe,
        report_split=manifest.report_split,
        system=manifest.system,
        embedder=manifest.embedder,
        sampled=manifest.sampled,
        pool=manifest.pool,
        provenance=manifest.provenance,
        entries=entries.items,
        queries=queries.items,
        qrels=parts.qrels,
        vectors=vectors.corpus,
        query_vectors=vectors.queries,
        feedback=reader.folder / feedback if feedback else None,
        notices=tuple(notes),
        sha256=_content_hash(reader),
        vectors_sha256=vectors.sha256,
    )
    return Report((), dataset.notices, dataset)


def _clock(given: float | None, entries: Sequence[Entry], queries: Sequence[Query]) -> tuple[float, list[str]]:
    """The clock of the set, seconds UTC, with a notice when dataset.json has none."""
    if given is not None:
        return given, []
    dates = [
        (t, f"entry {shown(e.id, 40)}") for e in entries for t in (e.created_at, e.updated_at) if t is not None
    ]
    dates += [(q.asked_at, f"query {shown(q.id, 40)}") for q in queries if q.asked_at is not None]
    if not dates:
        return 0.0, ["no as_of and no dates in the set: the clock is set to 1970-01-01"]
    latest, whose = max(dates)
    told = f"no as_of: the clock is set to the latest date in the set, {format_time(latest)}"
    before = max((t for t, _ in dates if t < latest), default=latest)
    if latest - before > FAR:
        told += f", of {whose}; the next is {format_time(before)}: correct the date if it is wrong"
    return latest, [told]


def _content_hash(reader: FolderReader) -> str:
    kinds = ("corpus.", "queries.", "qrels")
    named = reader.contents.items()
    lines = [f"{name} {digest}\n" for name, digest in named if name.startswith(kinds) or name.endswith(".md")]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def notices(
    entries: JsonLines[Entry], queries: JsonLines[Query], qrels: Grades, imported: bool = False
) -> Iterator[str]:
    """Yield the notices on corpus, queries and judgments, in a fixed order.

    Fields that only the store of an `imported` set has are meant to be there, but for what looks misspelt.
    """
    if not imported or _suggested(entries, FIELDS):
        yield from _unknown_fields(entries, FIELDS, ("entry has", "entries have"), "kept in Entry.extra")
    yield from _unknown_fields(queries, QUERY_FIELDS, ("query has", "queries have"), "left in the file")
    empty = [e for e in entries.items if not (e.text or e.l0 or e.l1)]
    titled = sum(bool(e.title) for e in empty)
    denied = [q.id for q in queries.items if not q.answerable and any(g > 0 for g in qrels.get(q.id, {}).values())]
    unjudged = sum(q.id not in qrels and q.split != LOGGED for q in queries.items)  # a log has feedback instead
    out = _out_of_scope(entries, queries, qrels)
    scope = "of entries outside their query's filter"
    counts = (
        (_unknown_targets(entries), "relation points", "relations point", "to entries that are not in the set"),
        (titled, "entry has", "entries have", "a title and no text"),
        (len(empty) - titled, "entry has", "entries have", "neither title nor text"),
        (unjudged, "query has", "queries have", "no judgment"),
        (out, "relevant judgment is", "relevant judgments are", scope),
        (_split_groups(queries.items), "group has", "groups have", "queries in more than one split"),
    )
    yield from (f"{counted(count, one, many)} {what}" for count, one, many, what in counts if count)
    if again := asked_again_in_words(asked_again(queries.items)):
        yield again
    if denied:
        named = ", ".join(shown(id_, 40) for id_ in denied[:_NAMES_SHOWN])
        count = counted(len(denied), "query is", "queries are")
        yield (
            f"{count} said to have no answer here, and labels call entries relevant: {named}"
            f"{', ...' if len(denied) > _NAMES_SHOWN else ''}; take one of the two back"
        )


def _unknown_fields(
    table: JsonLines[Item], known: Collection[str], words: tuple[str, str], where: str
) -> Iterator[str]:
    if table.unknown:
        names = sorted(table.unknown)
        more = ", ..." if len(names) > _NAMES_SHOWN else ""
        listed = ", ".join(shown(name, 40) for name in names[:_NAMES_SHOWN])
        count = counted(table.with_unknown, *words)
        yield f"{count} fields the format does not name, {where}: {listed}{more}{_suggested(table, known)}"


def _suggested(table: JsonLines[Item], known: Collection[str]) -> str:
    """Suggest fields of the format that no line has and that unknown fields may have meant."""
    absent = [name for name in known if not any(getattr(item, name) for item in table.items)]
    pairs = [(name, other) for name in absent if (other := meant(name, table.unknown))]
    return "".join(f"; did you mean {name!r} by {shown(other, 40)}?" for name, other in pairs)


def _unknown_targets(entries: JsonLines[Entry]) -> int:
    targets = [r.target for e in entries.items for r in e.relations]
    targets += [e.superseded_by for e in entries.items if e.superseded_by]
    return sum(target not in entries.lines for target in targets)


def _out_of_scope(entries: JsonLines[Entry], queries: JsonLines[Query], qrels: Grades) -> int:
    by_id = {entry.id: entry for entry in entries.items}
    return sum(
        grade > 0 and entry in by_id and bool(query.filters.failed(by_id[entry]))
        for query in queries.items
        if query.filters
        for entry, grade in qrels.get(query.id, {}).items()
    )


def _split_groups(queries: Sequence[Query]) -> int:
    splits: dict[int, set[str]] = {}
    for unit, query in zip(unit_numbers(queries).tolist(), queries, strict=True):
        splits.setdefault(unit, set()).add(query.split)
    return sum(len(names) > 1 for names in splits.values())
