"""Measures the latency of live search."""

from __future__ import annotations

import time
from collections.abc import Sequence

from steelyard.config import SearchConfig
from steelyard.query import Query
from steelyard_eval.recording.workspace import Workspace

TIMED = 50
"""The number of queries that latency is measured on."""


def latencies(space: Workspace, config: SearchConfig, queries: Sequence[Query]) -> tuple[list[float], int]:
    """Time live searches of the first queries, in milliseconds, and count those in which the embedder failed.

    A first pass warms caches and is not measured. Recorded vectors cost a look-up, not an embedding, so the
    latency is that of searching alone.
    """
    searcher = space.searcher(config)
    taken = []
    for warm in (False, True):
        for query in queries[:TIMED]:
            begin = time.perf_counter()
            searcher.search(query)
            if warm:
                taken.append((time.perf_counter() - begin) * 1000)
    return taken, searcher.degraded
