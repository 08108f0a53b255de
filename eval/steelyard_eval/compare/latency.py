"""What a configuration costs: the latency of live search, and embedding calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.query import Query
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.progress import bar
from steelyard_eval.recording.replay import Replay
from steelyard_eval.recording.workspace import Workspace

TIMED = 50
"""How many queries, spread evenly, the live latency is measured on."""


def timing(
    space: Workspace,
    queries: Sequence[Query],
    rows: Sequence[Contender],
    replays: Mapping[str, Replay],
    timed: bool,
) -> list[dict[str, Any]]:
    """Live latency over a sample of the queries, after a pass that warms caches; embedding calls over all.

    Recorded vectors cost a look-up, not an embedding, so the latency is that of searching alone.
    """
    records = []
    for row in bar("timing live search")(rows):
        calls = int(replays[row.label].embedded.sum())
        entry: dict[str, Any] = {"label": row.label, "system": row.config.system, "profile": row.config.profile}
        entry |= {"queries": len(queries), "embedding_calls": calls}
        if timed:
            taken, degraded = _latencies(space, row, queries[:TIMED])
            entry |= {"p50_ms": float(np.percentile(taken, 50)), "p95_ms": float(np.percentile(taken, 95))}
            entry |= {"degraded": degraded} if degraded else {}
        records.append(entry)
    return records


def _latencies(space: Workspace, row: Contender, queries: Sequence[Query]) -> tuple[list[float], int]:
    """Milliseconds of every search of the second pass, and how many searches the embedder failed in both."""
    searcher = space.searcher(row.config)
    taken = []
    for warm in (False, True):
        for query in queries:
            begin = time.perf_counter()
            searcher.search(query)
            if warm:
                taken.append((time.perf_counter() - begin) * 1000)
    return taken, searcher.degraded
