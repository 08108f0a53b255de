"""The HNSW indexes of a database: made, and measured beside the exact search on the vectors that lie there."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from steelyard.base.arrays import Vectors
from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import Embedder, embed_checked, space_of
from steelyard.extensions.postgres.vault import PostgresVault
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space

BREADTHS = (40, 100, 200, 400)
"""The values of ef_search that are measured; 40 is pgvector's own."""
FIRST, LIST = 10, 100
"""The places that recall counts, and how long lists are: as long as the systems' own lists get."""
SAMPLE, SEED = 200, 0
MIN_QUERIES = 30
"""Fewer queries of a data set say too little."""
Probes = list[tuple[str, Vectors]]
"""Vectors, each with the id of the entry whose vector it is."""


def index_hnsw(
    vault: PostgresVault, queries: Sequence[str], entries: Sequence[str], embedders: Sequence[Embedder]
) -> list[dict[str, object]]:
    """Make the index of each space that has none, and measure it; the records are for `--json`.

    `queries` (texts of the data set) are searched for where there are `MIN_QUERIES` and one of the embedders is of
    the space, else vectors of `entries` (ids), each of which is left out of what it finds.

    A record has the space, how many bytes its index takes, the seconds in which all were made, what was searched
    for, and rows: ef_search (None: exact), the share of the exact first 10 and of the exact list of 100 that was
    found, and milliseconds by the clock; no rows where there is nothing to search for. Raises as
    `PostgresVault.make_hnsw`.
    """
    begin = time.perf_counter()
    sizes = vault.make_hnsw()
    seconds = time.perf_counter() - begin
    if not sizes:
        raise ConfigError(f"{vault.path} has no vectors of texts to index; name a model with --embedder")
    try:
        return [
            {
                "model": space.model,
                "recipe": space.recipe,
                "bytes": size,
                "seconds": seconds,
                "list": LIST,
                **measured(vault, space, *_probes(vault, space, queries, entries, embedders)),
            }
            for space, size in sizes.items()
        ]
    finally:
        vault.search_by(None)


def measured(vault: PostgresVault, space: Space, what: str, probes: Probes) -> dict[str, object]:
    """How many of which vectors were searched for, and rows: see `index_hnsw`. The index is there."""
    if not probes:
        return {"probes": f"no {what}", "rows": []}
    exact, row = _searched(vault, space, probes, None)
    rows = [{"ef_search": None, "recall@10": 1.0, "recall@100": 1.0, **row}]
    for breadth in BREADTHS:
        lists, row = _searched(vault, space, probes, breadth)
        recalls = {f"recall@{cut}": _recall(exact, lists, cut) for cut in (FIRST, LIST)}
        rows.append({"ef_search": breadth, **recalls, **row})
    return {"probes": f"{len(probes)} {what}", "rows": rows}


def _searched(
    vault: PostgresVault, space: Space, probes: Probes, breadth: int | None
) -> tuple[list[list[str]], dict[str, float]]:
    """The lists of all probes, and how long they took; the first is searched for before, so that all is warm."""
    vault.search_by(breadth)
    taken, lists = [], []
    for id_, vector in [*probes[:1] * 3, *probes]:
        begin = time.perf_counter()
        hits = vault.nearest(space, vector, EVERYTHING, LIST, True)
        taken.append(1e3 * (time.perf_counter() - begin))
        lists.append([hit.id for hit in hits if hit.id != id_])
    p50, p95 = np.percentile(taken[-len(probes) :], [50, 95])
    return lists[-len(probes) :], {"p50_ms": float(p50), "p95_ms": float(p95)}


def _recall(exact: list[list[str]], found: list[list[str]], cut: int) -> float:
    """The mean share of the first places of the exact lists that are in those found."""
    pairs = [(set(wanted[:cut]), set(other[:cut])) for wanted, other in zip(exact, found, strict=True) if wanted]
    return float(np.mean([len(wanted & other) / len(wanted) for wanted, other in pairs])) if pairs else 1.0


def _probes(
    vault: PostgresVault,
    space: Space,
    queries: Sequence[str],
    entries: Sequence[str],
    embedders: Sequence[Embedder],
) -> tuple[str, Probes]:
    """What is searched for, in words and as vectors; drawn by a fixed seed."""
    rng = np.random.default_rng(SEED)
    fitting = [embedder for embedder in embedders if space_of(embedder, space.layer, space.recipe) == space]
    if fitting and len(queries) >= MIN_QUERIES:
        drawn = rng.permutation(len(queries))[:SAMPLE]
        vectors = embed_checked(fitting[0], [queries[i] for i in drawn], "query")
        return "queries of the data set", [("", vector) for vector in vectors if vector.any()]
    drawn = rng.permutation(len(entries))[:SAMPLE]
    stored = vault.vectors_of(space, [entries[i] for i in drawn])
    return "vectors of entries", list(stored.items())
