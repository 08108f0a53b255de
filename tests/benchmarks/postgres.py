"""A store in PostgreSQL beside a vault file: loaded, opened, searched in turns, with the same lists.

Times are of the processor, of this process alone, because other programs disturb them least.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/scratch python tests/benchmarks/postgres.py --entries 100000

With `--hnsw` also by the server's HNSW index: how long it takes to make, what of the exact lists it finds and how
fast, by the clock, because it works in another process, and eight threads that search at once, with a connection
each and with one for all. With `--dataset FOLDER` it is only this, of the recorded vectors and queries of a data
set. The database must have pgvector and no schema steelyard; what is made there is dropped.
"""

import argparse
import os
import resource
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import synthetic
from timing import race

from steelyard.embedders.embed import RecordedEmbedder
from steelyard.extensions.postgres import PostgresVault
from steelyard.extensions.postgres.measured import LIST, measured
from steelyard.live.search import Searcher
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace

MODEL, BATCH, DIM = "synthetic", 20_000, 384
THREADS = 8


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


def approximate(store, probes) -> None:
    """The index of the only space, beside the exact search of the copy."""
    begin = time.perf_counter()
    [(space, size)] = store.make_hnsw().items()
    print(f"HNSW: made in {time.perf_counter() - begin:.0f} s by the clock, {size / 2**20:.0f} MB")
    for row in measured(store, space, "probes", [("", probe) for probe in probes])["rows"]:
        print(", ".join(f"{name} {value if value is None else round(value, 3)}" for name, value in row.items()))
    store.search_by(100)
    turn = threading.Lock()

    def search(together, probe):
        with together:
            return store._hnsw.near(1, probe, LIST)

    many = [probe for _ in range(10) for probe in probes[:60]]
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(3):
            for name, one in (("a connection each", nullcontext()), ("one connection", turn)):
                begin = time.perf_counter()
                list(pool.map(partial(search, one), many))
                print(f"{THREADS} threads, {name}: {len(many) / (time.perf_counter() - begin):.0f} lists a second")
    store.search_by(None)


def recorded(store, folder) -> None:
    """The recorded vectors of a data set, searched for those of its queries."""
    data = load(folder)
    workspace = Workspace.open(data, vault=store, embedder="recorded")
    workspace.index_for([find_system("vector")], {"vector"})
    texts = list(dict.fromkeys(query.text for query in data.queries))
    vectors = workspace.embedder.embed(texts, "query")
    print(f"{data.name}: {store.count()} entries, {len(texts)} queries, {vectors.shape[1]} numbers a vector")
    approximate(store, vectors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--hnsw", action="store_true", help="the server's HNSW index, too")
    parser.add_argument("--dataset", metavar="FOLDER", help="a data set with recorded vectors")
    asked = parser.parse_args()
    import psycopg  # of the extra postgres: the run of all tests imports this file, too

    address = os.environ["STEELYARD_POSTGRES"]
    if asked.dataset:
        with psycopg.connect(address, autocommit=True) as admin:
            try:
                with PostgresVault(address, create=True) as store:
                    recorded(store, asked.dataset)
            finally:
                admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")
        return
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
                        approximate(store, list(probes.values()))
        finally:
            admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")


if __name__ == "__main__":
    main()
