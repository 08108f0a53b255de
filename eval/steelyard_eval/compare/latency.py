"""Measures the latency of live search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Latency

TIMED = 50
"""The number of queries that latency is measured on."""


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of live searches, of their layers by name, and how many searches the embedder failed."""

    searches: Sequence[float]
    layers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    degraded: int = 0

    def summary(self) -> Latency | None:
        """Percentiles for the result; None where nothing was searched."""
        if not self.searches:
            return None
        p50, p95, p99 = np.percentile(self.searches, (50, 95, 99)).tolist()
        layers = {name: Latency(*_ends(taken)) for name, taken in self.layers.items()}
        return Latency(p50, p95, p99, layers, self.degraded)


def _ends(taken: Sequence[float]) -> tuple[float, None, float]:
    p50, p99 = np.percentile(taken, (50, 99)).tolist()
    return p50, None, p99


def latencies(
    space: Workspace, config: SearchConfig, queries: Sequence[Query], most: int | None = None, warm: bool = False
) -> Latencies:
    """Time live searches of the first `most` queries, in milliseconds; count those that the embedder failed.

    A first pass warms caches and is not measured; one that is `warm`, because its lists were fetched for these
    queries before, needs a search in each scope. Recorded vectors cost a look-up, not an embedding, so the latency
    is that of searching alone.
    """
    searcher = space.searcher(config)
    queries = space.dataset.asked(queries, searcher.knows)[: TIMED if most is None else most]
    first_of = {query.filters: query for query in reversed(queries)}
    for query in first_of.values() if warm else queries:
        searcher.search(query)
    taken: list[float] = []
    layers: dict[str, list[float]] = {}
    for query in queries:
        begin = time.perf_counter()
        result = searcher.search(query)
        taken.append((time.perf_counter() - begin) * 1000)
        for name in result.seconds.keys() & LAYERS:
            layers.setdefault(name, []).append(result.seconds[name] * 1000)
    return Latencies(taken, dict(sorted(layers.items())), searcher.degraded)
