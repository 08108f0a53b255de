"""What each row of a leaderboard costs: live latency, queries embedded, bytes of vectors; and who is dominated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.query import Query
from steelyard.table import EMBEDDING
from steelyard_eval.compare.latency import latencies
from steelyard_eval.progress import bar
from steelyard_eval.recommend.board import Board, Place
from steelyard_eval.recording.workspace import Workspace

Record = dict[str, Any]
FLOAT = 4
"""Bytes of a number of a vector."""


def timing(space: Workspace, queries: Sequence[Query], board: Board, timed: bool) -> list[Record]:
    """A record a row: `queries`, `embedding_calls`, `vector_bytes`, and with `timed` p50, p95 and `pareto`.

    A row is on the Pareto front where no other is at least as good in the metric, in p50 and in embedding calls,
    and better in one of them.
    """
    records = [_costs(space, len(queries), place) for place in board.places]
    if timed:
        for place, entry in bar("timing live search")(list(zip(board.places, records, strict=True))):
            entry |= _latency(space, queries, place)
        _mark_front(board, records)
    return records


def _costs(space: Workspace, queries: int, place: Place) -> Record:
    about = {name: place.about()[name] for name in ("label", "system", "profile")}
    return {**about, "queries": queries, "embedding_calls": place.calls, "vector_bytes": _bytes(space, place)}


def _bytes(space: Workspace, place: Place) -> int | None:
    """Bytes of the vectors that it searches; None where nobody can know."""
    if place.config is None:
        return None
    read = place.config.effective.signals() & EMBEDDING
    layers = {"text" if name in ("vector", "cosine") else name for name in read}
    sizes = {own.layer: size for own, size in space.store.spaces()}
    return FLOAT * len(space.dataset.entries) * sum(sizes.get(layer, 0) for layer in layers)


def _latency(space: Workspace, queries: Sequence[Query], place: Place) -> Record:
    if place.config is None:
        return {}
    return latencies(space, place.config, queries).record()


def _mark_front(board: Board, records: list[Record]) -> None:
    """Add `pareto` to every record that was timed."""
    points = {
        at: (-float(place.values[board.metric].mean()), entry["p50_ms"], entry["embedding_calls"])
        for at, (place, entry) in enumerate(zip(board.places, records, strict=True))
        if "p50_ms" in entry
    }
    for at, own in points.items():
        records[at]["pareto"] = not any(_dominates(other, own) for other in points.values())


def _dominates(other: tuple[float, ...], own: tuple[float, ...]) -> bool:
    return other != own and all(a <= b for a, b in zip(other, own, strict=True))
