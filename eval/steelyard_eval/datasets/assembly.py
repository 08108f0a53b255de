"""Assembles a data set from the parts that the reader of a format returns, with notices on what is odd in them.

What is odd is no fault: one line with a count for each kind. Recorded embeddings are float16 .npy files,
memory-mapped, with one row for each line of their table.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import quote
from steelyard.base.fields import format_time
from steelyard.memory.entry import FIELDS, Entry
from steelyard.memory.query import Query
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.corpus_and_queries import QUERY_FIELDS, Item, JsonLines
from steelyard_eval.datasets.dataset import LOGGED, Dataset, Matrix, Report
from steelyard_eval.datasets.file_reader import FolderReader, meant
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.manifest import Manifest

Grades = Mapping[str, Mapping[str, int]]
FAR_AHEAD_SECONDS = 365 * 86_400
_NAMES_SHOWN = 10
_NAME = re.compile(r"(corpus|queries)(?:\.(l0|l1|l2))?\.([\w.-]+)\.f16\.npy")
_BLOCK = 65536  # rows checked at a time, so that a large file never fills the memory


@dataclass(frozen=True)
class DatasetParts:
    """What the reader of a format returns; None for a table that could not be read."""

    manifest: Manifest
    entries: JsonLines[Entry] | None
    queries: JsonLines[Query] | None
    qrels: dict[str, dict[str, int]]
    notices: list[str]
    second: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def assemble(reader: FolderReader, parts: DatasetParts, log: bool) -> Report:
    """Read the vectors, collect the notices, and build the data set when there are no faults.

    With `log` the lines of a feedback log are checked; it may be long, and only learning reads it.
    """
    feedback = reader.find("feedback.jsonl", required=False)
    if feedback is not None and log:
        from steelyard_eval.datasets.logs import check_log

        check_log(reader, feedback)
    entries, queries, manifest = parts.entries, parts.queries, parts.manifest
    vectors = read_vectors(reader, entries, queries, manifest.imported)
    notes = [*parts.notices, *vectors.notices]
    if entries is None or queries is None:
        return Report(reader.sorted_faults(), tuple(notes), None)
    as_of, clock = _clock(manifest.as_of, entries.items, queries.items)
    notes += [*clock, *notices(entries, queries, parts.qrels, manifest.imported)]
    if reader.faults:
        return Report(reader.sorted_faults(), tuple(notes), None)
    kinds = ("corpus.", "queries.", "qrels")
    named = [name for name in reader.contents if name.startswith(kinds) or name.endswith(".md")]
    dataset = Dataset(
        **{**vars(manifest), "as_of": as_of},
        path=reader.folder,
        second=parts.second,
        entries=entries.items,
        queries=queries.items,
        qrels=parts.qrels,
        vectors=vectors.corpus,
        query_vectors=vectors.queries,
        feedback=reader.folder / feedback if feedback else None,
        notices=tuple(notes),
        sha256=_hash_of_files({name: reader.contents[name] for name in named}),
        vectors_sha256=_hash_of_files(vectors.digests) if vectors.digests else "",
    )
    return Report((), dataset.notices, dataset)


def _hash_of_files(digests: Mapping[str, str | None]) -> str:
    lines = sorted(f"{name} {digest}\n" for name, digest in digests.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _clock(given: float | None, entries: Sequence[Entry], queries: Sequence[Query]) -> tuple[float, list[str]]:
    """The clock of the set, seconds UTC, with a notice when dataset.json has none."""
    if given is not None:
        return given, []
    dates = [
        (t, f"entry {quote(e.id, 40)}") for e in entries for t in (e.created_at, e.updated_at) if t is not None
    ]
    dates += [(q.asked_at, f"query {quote(q.id, 40)}") for q in queries if q.asked_at is not None]
    if not dates:
        return 0.0, ["no as_of and no dates in the set: the clock is set to 1970-01-01"]
    latest, whose = max(dates)
    told = f"no as_of: the clock is set to the latest date in the set, {format_time(latest)}"
    before = max((t for t, _ in dates if t < latest), default=latest)
    if latest - before > FAR_AHEAD_SECONDS:
        told += f", of {whose}; the next is {format_time(before)}: correct the date if it is wrong"
    return latest, [told]


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
    targets = [r.target for e in entries.items for r in e.relations]
    targets += [e.superseded_by for e in entries.items if e.superseded_by]
    unknown = sum(target not in entries.lines for target in targets)
    scope, by_id = "of entries outside their query's filter", {entry.id: entry for entry in entries.items}
    out = sum(
        grade > 0 and entry in by_id and bool(query.filters.failed(by_id[entry]))
        for query in queries.items
        if query.filters
        for entry, grade in qrels.get(query.id, {}).items()
    )
    splits: dict[int, set[str]] = {}
    for unit, query in zip(unit_numbers(queries.items).tolist(), queries.items, strict=True):
        splits.setdefault(unit, set()).add(query.split)
    split = sum(len(names) > 1 for names in splits.values())
    counts = (
        (unknown, "relation points", "relations point", "to entries that are not in the set"),
        (titled, "entry has", "entries have", "a title and no text"),
        (len(empty) - titled, "entry has", "entries have", "neither title nor text"),
        (unjudged, "query has", "queries have", "no labels"),
        (out, "relevant label is", "relevant labels are", scope),
        (split, "group has", "groups have", "queries in more than one split"),
    )
    yield from (f"{counted(count, one, many)} {what}" for count, one, many, what in counts if count)
    if denied:
        count = counted(len(denied), "query is", "queries are")
        yield (
            f"{count} said to have no answer here, and labels call entries relevant: {_first(denied)}"
            "; take one of the two back"
        )


def _first(names: Collection[str]) -> str:
    more = ", ..." if len(names) > _NAMES_SHOWN else ""
    return ", ".join(quote(name, 40) for name in [*names][:_NAMES_SHOWN]) + more


def _unknown_fields(
    table: JsonLines[Item], known: Collection[str], words: tuple[str, str], where: str
) -> Iterator[str]:
    if table.unknown:
        listed, count = _first(sorted(table.unknown)), counted(table.with_unknown, *words)
        yield f"{count} fields the format does not name, {where}: {listed}{_suggested(table, known)}"


def _suggested(table: JsonLines[Item], known: Collection[str]) -> str:
    """Suggest fields of the format that no line has and that unknown fields may have meant."""
    absent = [name for name in known if not any(getattr(item, name) for item in table.items)]
    pairs = [(name, other) for name in absent if (other := meant(name, table.unknown))]
    return "".join(f"; did you mean {name!r} by {quote(other, 40)}?" for name, other in pairs)


@dataclass(slots=True)
class Vectors:
    """Corpus vectors by (model, layer), query vectors by model, the hashes of their files, and notices."""

    corpus: dict[tuple[str, str], Matrix] = field(default_factory=dict)
    queries: dict[str, Matrix] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def read_vectors(
    reader: FolderReader, entries: JsonLines[Entry] | None, queries: JsonLines[Query] | None, imported: bool
) -> Vectors:
    """Open every vector file; the rows of a table that is None are not checked.

    In what was imported, a row of zeros stands for an entry that its store has no vector of; else it is a fault.
    """
    tables = {"corpus": entries, "queries": queries}
    found, ignored, partial = Vectors(), 0, {}
    for file in reader.arrays():
        named = _NAME.fullmatch(file)
        if named is None or (named[1] == "queries" and named[2]):
            ignored += 1
            continue
        side, layer, model = named.groups()
        found.digests[file] = reader.digest(file)
        matrix = _open(reader, file, tables[side]) if found.digests[file] else None
        if matrix is None:
            continue
        zeros = _zeros(reader, file, matrix, full=side == "queries" or not (imported or layer))
        if zeros and not layer:
            partial[model] = zeros
        if side == "corpus":
            found.corpus[model, layer or "text"] = matrix
        else:
            found.queries[model] = matrix
    for (model, layer), matrix in found.corpus.items():
        other = found.queries.get(model)
        if other is not None and other.shape[1] != matrix.shape[1]:
            file = f"corpus.{model}.f16.npy" if layer == "text" else f"corpus.{layer}.{model}.f16.npy"
            rule = f"differs from {other.shape[1]} in queries.{model}.f16.npy"
            reader.fault(file, 0, "dimension", str(matrix.shape[1]), rule, "Embed both with the same model")
    if ignored:
        found.notices.append(f"{ignored} .npy files have no name of the format and are ignored")
    for model, zeros in partial.items():
        have = counted(zeros, "entry has", "entries have")
        rest = "keyword search finds them, vector search does not"
        found.notices.append(f"{have} no recorded vector of {quote(model)}: {rest}")
    return found


def _open(
    reader: FolderReader, file: str, table: JsonLines[Entry] | JsonLines[Query] | None
) -> NDArray[np.float16] | None:
    """Open one file; None, and a fault, for one of another kind or with another number of rows."""
    try:
        matrix = reader.open_array(file)
    except Exception as error:  # a broken header makes numpy raise almost anything
        rule = f"is not a whole .npy file of numbers ({quote(str(error), 120)})"
        reader.fault(file, 0, "", "", rule, "Write it with numpy.save(array, allow_pickle=False)")
        return None
    before = len(reader.faults)
    if matrix.dtype != np.float16:
        reader.fault(file, 0, "dtype", str(matrix.dtype), "must be float16", "Save array.astype('float16')")
    if matrix.ndim != 2:
        reader.fault(file, 0, "shape", str(matrix.shape), "must have two dimensions", "Save one vector a row")
    elif table is not None and len(matrix) != table.rows:
        rule = f"must be {table.rows}, the lines of {file.split('.')[0]}"
        reader.fault(file, 0, "rows", str(len(matrix)), rule, "Record the vectors again, in file order")
    return matrix if len(reader.faults) == before else None


def _zeros(reader: FolderReader, file: str, matrix: Matrix, full: bool) -> int:
    """Count the rows of zeros, in whose place there is no vector.

    Record a fault for the first row, counted from 0, that is not finite, and for the first of zeros where `full`
    allows none, or where there is nothing else.
    """
    broken, zero = [], []
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        broken += [start + int(i) for i in np.flatnonzero(~np.isfinite(block).all(axis=1))]
        zero += [start + int(i) for i in np.flatnonzero(~block.any(axis=1))]
    wrong = zero if full or len(zero) == len(matrix) else []
    for rows, what in ((broken, "contains NaN or infinity"), (wrong, "is all zeros")):
        if rows:
            rule = f"{what} ({len(rows)} such rows, counted from 0)"
            reader.fault(file, 0, f"row {rows[0]}", "", rule, "Embed its text again")
    return len(zero)
