"""Assembles a data set from the parts that the reader of a format returns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.datasets.dataset import Dataset, Report
from steelyard_eval.datasets.embeddings import read_vectors
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.json_lines import JsonLines
from steelyard_eval.datasets.logs import check_log
from steelyard_eval.datasets.manifest import Manifest
from steelyard_eval.datasets.notices import notices


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
    vectors = read_vectors(reader, entries, queries)
    found = list(parts.notices)
    if vectors.ignored:
        found.append(f"{len(vectors.ignored)} .npy files have no name of the format and are ignored")
    if entries is None or queries is None:
        return Report(reader.told(), tuple(found), None)
    as_of, clock = _clock(manifest.as_of, entries.items, queries.items)
    found += [*clock, *notices(entries, queries, parts.qrels, manifest.imported)]
    if reader.faults:
        return Report(reader.told(), tuple(found), None)
    dataset = Dataset(
        name=manifest.name,
        path=reader.folder,
        description=manifest.description,
        licence=manifest.licence,
        as_of=as_of,
        recipe=manifest.recipe,
        report_split=manifest.report_split,
        system=manifest.system,
        sampled=manifest.sampled,
        pool=manifest.pool,
        entries=entries.items,
        queries=queries.items,
        qrels=parts.qrels,
        vectors=vectors.corpus,
        query_vectors=vectors.queries,
        feedback=reader.folder / feedback if feedback else None,
        notices=tuple(found),
        sha256=_content_hash(reader),
        vectors_sha256=vectors.sha256,
    )
    return Report((), dataset.notices, dataset)


def _clock(given: float | None, entries: Sequence[Entry], queries: Sequence[Query]) -> tuple[float, list[str]]:
    """The clock of the set, seconds UTC, with a notice when dataset.json has none."""
    if given is not None:
        return given, []
    dates = [t for e in entries for t in (e.created_at, e.updated_at) if t is not None]
    dates += [q.asked_at for q in queries if q.asked_at is not None]
    if not dates:
        return 0.0, ["no as_of and no dates in the set: the clock is set to 1970-01-01"]
    latest = max(dates)
    return latest, [f"no as_of: the clock is set to the latest date in the set, {format_time(latest)}"]


def _content_hash(reader: FolderReader) -> str:
    kinds = ("corpus.", "queries.", "qrels")
    named = reader.contents.items()
    lines = [f"{name} {digest}\n" for name, digest in named if name.startswith(kinds) or name.endswith(".md")]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
