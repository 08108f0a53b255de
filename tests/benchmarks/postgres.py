"""A store in PostgreSQL beside a vault file: loaded, opened, searched in turns, with the same lists.

Times are of the processor, of this process alone, because other programs disturb them least.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/scratch python tests/benchmarks/postgres.py --entries 100000

With `--hnsw` the server also builds pgvector's approximate index: what it costs, and what of the exact first ten
it finds, by the clock, because it works in another process. The database must have pgvector and no schema
steelyard; what is made there is dropped.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import synthetic
from timing import race

from steelyard.embedders.embed import RecordedEmbedder
from steelyard.live.search import Searcher
from steelyard.memory.filters import EVERYTHING
from steelyard.stores.base import Space
from steelyard.stores.postgres import PostgresVault
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system

MODEL, BATCH, DIM = "synthetic", 20_000, 384
FIRST = 10
"""Places of a list of which the share is measured that HNSW finds."""


def fill(store, entries, matrix, recipe) -> None:
    """Entries and their vectors, in transactions of `BATCH` entries."""
    space = Space(MODEL, "text", recipe)
    for begin in range(0, len(entries), BATCH):
        own = entries[begin : begin + BATCH]
        with store.transaction():
            store.upsert(own)
            store.put_vectors(space, [entry.id for entry in own], matrix[begin : begin + BATCH])


def worked(work):
    """What the work gives, and the seconds of processor time that it took of this process."""
    begin = time.process_time()
    return work(), time.process_time() - begin


def approximate(admin, probes, found) -> None:
    """The server's HNSW, with pgvector's defaults, beside the ids of the exact search for each probe."""
    near = f"embedding::vector({DIM}) <=> %s::vector"
    admin.execute("SET maintenance_work_mem = '4GB'")
    begin = time.perf_counter()
    admin.execute(
        f"CREATE INDEX near ON steelyard.vectors USING hnsw ((embedding::vector({DIM})) vector_cosine_ops) "
        "WHERE space = 1"
    )
    seconds = time.perf_counter() - begin
    [(size,)] = admin.execute("SELECT pg_relation_size('steelyard.near') / 2^20").fetchall()
    print(f"HNSW: built in {seconds:.0f} s by the clock, {size:.0f} MB")
    for breadth in (40, 100, 400):
        admin.execute(f"SET hnsw.ef_search = {breadth}")
        same, taken = [], []
        for probe, exact in zip(probes, found, strict=True):
            begin = time.perf_counter()
            rows = admin.execute(
                f"SELECT id FROM steelyard.vectors WHERE space = 1 ORDER BY {near} LIMIT {FIRST}",
                (str(probe.tolist()),),
            ).fetchall()
            taken.append(1e3 * (time.perf_counter() - begin))
            same.append(len(exact & {id_ for (id_,) in rows}) / FIRST)
        p50, p95 = np.percentile(taken, [50, 95])
        print(f"HNSW, ef_search {breadth:3}: recall {np.mean(same):.3f}, p50 {p50:.2f} ms, p95 {p95:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--hnsw", action="store_true", help="the server's approximate index, too")
    asked = parser.parse_args()
    import psycopg  # of the extra postgres: the run of all tests imports this file, too

    address = os.environ["STEELYARD_POSTGRES"]
    system = find_system("plain")
    matrix = synthetic.vectors(asked.entries, DIM)
    made = synthetic.memory(asked.entries)
    entries = made.entries
    queries = synthetic.questions(made, asked.queries)
    probes = dict(zip(queries, synthetic.probes(matrix, asked.queries), strict=True))
    embedder = RecordedEmbedder(MODEL, system.reading.recipe, probes)
    with tempfile.TemporaryDirectory() as folder, psycopg.connect(address, autocommit=True) as admin:
        os.environ["STEELYARD_CACHE"] = f"{folder}/cache"  # where copies lie
        try:
            with Vault(Path(folder) / "a.db", create=True) as vault:
                _, seconds = worked(lambda: fill(vault, entries, matrix, system.reading.recipe))
                size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
                print(f"vault: written in {seconds:.1f} s, {size:.0f} MB")
                with PostgresVault(address, create=True) as store:
                    _, seconds = worked(lambda: fill(store, entries, matrix, system.reading.recipe))
                [(size,)] = admin.execute(
                    "SELECT sum(pg_total_relation_size(oid)) / 2^20 FROM pg_class "
                    "WHERE relnamespace = 'steelyard'::regnamespace AND relkind = 'r'"
                ).fetchall()
                print(f"PostgreSQL: written in {seconds:.1f} s, {size:.0f} MB")
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                store, seconds = worked(lambda: PostgresVault(address))
                size = sum(path.stat().st_size for path in Path(folder, "cache").rglob("*")) / 2**20
                print(
                    f"opened in {seconds:.1f} s, a copy of {size:.0f} MB (peak {before / 2**10:.0f} MB before, "
                    f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} after)"
                )
                with store:
                    for name in ("fts", "vector", "plain"):
                        config = find_system(name).config()
                        searchers = {
                            label: Searcher(own, config, embedder, clock=lambda: 0.0)
                            for label, own in (("vault", vault), ("PostgreSQL", store))
                        }
                        for text in queries[:12]:
                            lists = [
                                [(h.entry.id, h.score) for h in s.search(text).hits] for s in searchers.values()
                            ]
                            assert lists[0] == lists[1], text
                        taken = race({label: own.search for label, own in searchers.items()}, queries, 2)
                        for label, own in taken.items():
                            p50, p95 = np.percentile([cpu for _, cpu in own], [50, 95])
                            print(f"{name:8}{label:12} p50 {p50:7.2f} ms  p95 {p95:7.2f} ms")
                    if asked.hnsw:
                        space = Space(MODEL, "text", system.reading.recipe)
                        found = [
                            {hit.id for hit in store.nearest(space, probe, EVERYTHING, FIRST, True)}
                            for probe in probes.values()
                        ]
                        approximate(admin, probes.values(), found)
        finally:
            admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")


if __name__ == "__main__":
    main()
