"""What each row of a leaderboard costs: live latency, queries embedded, bytes of indexes; and who is dominated."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard.retrievers.reading import Words
from steelyard.stores.base import KeywordIndex
from steelyard.systems import find_system
from steelyard.table.signal_table import EMBEDDING
from steelyard_eval.candidates.restriction import TIMED
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.leaderboard import Board, Place
from steelyard_eval.common.documents.results import TimingRecord
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.compare.latency import latencies
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.workspace import Workspace

FLOAT = 4
"""Bytes of a number of a vector."""
POSTING = 16
"""Bytes of an entry in a word's list, in the indexes that are held in memory."""


def timing(source: Source, queries: Sequence[Query], board: Board, timed: bool) -> list[TimingRecord]:
    """A record a row: `queries`, `embedding_calls` and bytes of indexes; with `timed` p50, p95 and `pareto`.

    A row is on the Pareto front where no other is at least as good in the metric, in p50, in queries embedded and
    in bytes, and better in one of them. Over a recording nothing can be timed.
    """
    words = words_of_entries(source.dataset) if source.space else 0
    records = [_costs(source, len(queries), place, words) for place in board.places]
    if timed and source.space is not None:
        warm: set[tuple[str, frozenset[str]]] = set()  # the lists that a row before has fetched
        for place, entry in bar("timing live search")(list(zip(board.places, records, strict=True))):
            if place.config is not None:
                lists = (place.config.name, frozenset(place.config.effective.retrievers()))
                entry.update(latencies(source.space, place.config, queries, TIMED, lists in warm).record())
                warm.add(lists)
        _mark_front(board, records)
    return records


def _costs(source: Source, queries: int, place: Place, words: int) -> TimingRecord:
    """With the bytes of the keyword indexes and vectors that it searches; None where that cannot be known."""
    about, space, config = place.about(), source.space, place.config
    return {
        "label": about["label"],
        "system": about.get("system"),
        "profile": about.get("profile"),
        "queries": queries,
        "embedding_calls": None if source.lists is not None else place.calls,
        "keyword_bytes": _keywords(space, config, words) if space and config else None,
        "vector_bytes": _vectors(space, config) if space and config else None,
    }


def _keywords(space: Workspace, config: SearchConfig, words: int) -> int:
    """Of FTS5 what it stores; of each index in memory a posting for every word of every entry."""
    read = config.effective.signals()
    index = find_system(config.name).reading.index
    held = read & {"bm25", "tfidf", "fts"}
    if not isinstance(index, KeywordIndex):
        return len(held) * POSTING * words
    stored = space.store.index_bytes(index) if "fts" in read else 0
    return stored + len(held - {"fts"}) * POSTING * words


def words_of_entries(dataset: Dataset) -> int:
    """How many words the entries have, each counted once an entry."""
    return sum(len(set(Words().of(entry))) for entry in dataset.entries)


def _vectors(space: Workspace, config: SearchConfig) -> int:
    layers = {"text" if name in ("vector", "cosine") else name for name in config.effective.signals() & EMBEDDING}
    sizes = {vectors.layer: size for vectors, size in space.store.spaces()}
    return FLOAT * len(space.dataset.entries) * sum(sizes.get(layer, 0) for layer in layers)


def _mark_front(board: Board, records: list[TimingRecord]) -> None:
    """Add `pareto` to every record that was timed."""
    points = {
        row: (
            -float(place.values[board.metric].mean()),
            *(float(cost or 0) for cost in (entry["p50_ms"], entry["embedding_calls"], _size(entry))),
        )
        for row, (place, entry) in enumerate(zip(board.places, records, strict=True))
        if "p50_ms" in entry
    }
    for row, point in points.items():
        records[row]["pareto"] = not any(_dominates(other, point) for other in points.values())


def _size(entry: TimingRecord) -> int:
    return (entry["keyword_bytes"] or 0) + (entry["vector_bytes"] or 0)


def _dominates(other: tuple[float, ...], point: tuple[float, ...]) -> bool:
    return other != point and all(a <= b for a, b in zip(other, point, strict=True))
