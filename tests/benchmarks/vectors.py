"""Live vector search: Vault.nearest beside SQL on the same vec0 table and a numpy product with a partial sort."""

import tempfile
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec
import synthetic
from timing import Race, once, peer, race, recall, same_scores

from steelyard import Entry, Query, RecordedEmbedder, Searcher, Vault, find_system
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space

faiss = peer("faiss")

MODEL = "synthetic"
DEPTH = 100
BATCH = 2000
DOCUMENT = {(100_000, 1536): ("Soleri's document: about 50 ms, brute force", 50.0)}


def races(quick, queries):
    sizes = [(300, 16)] if quick else [(10_000, 384), (100_000, 384), (100_000, 1536)]
    return [nearest(count, dim, max(8, queries * 10_000 // count) if not quick else 5) for count, dim in sizes]


def nearest(count, dim, queries):
    matrix = synthetic.vectors(count, dim)
    probes = synthetic.probes(matrix, queries)
    system = find_system("vector")
    space = Space(MODEL, "text", system.reading.recipe)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Vault(path, create=True) as vault:
            ids = [f"m{at:06d}" for at in range(count)]
            vault.upsert(map(Entry, ids))
            _, seconds = once(lambda: fill(vault, space, ids, matrix))
            raw = connect(path)
            table = vault._table(space)[0]
            sql = f"SELECT rowid, distance FROM {table} WHERE embedding MATCH ? AND k = {DEPTH}"
            contenders = {
                "steelyard: Vault.nearest": lambda at: vault.nearest(space, probes[at], EVERYTHING, DEPTH, True),
                "sqlite-vec, SQL on the same table": lambda at: raw.execute(
                    sql, (probes[at].tobytes(),)
                ).fetchall(),
                "numpy: product, argpartition": lambda at: top(matrix, probes[at]),
            }
            if count <= 10_000:
                asked = {str(at): row for at, row in enumerate(probes)}
                embedder = RecordedEmbedder(MODEL, system.reading.recipe, asked)
                searcher = Searcher(vault, system.config(10, MODEL), embedder)
                contenders["steelyard: Searcher.search"] = lambda at: searcher.search(Query(str(at)))
            agree(contenders, range(queries))
            contenders |= faiss_of(matrix, probes)
            found = recall({name: ids_of(name, find) for name, find in contenders.items()}, range(queries))
            taken = race(contenders, range(queries), 3 if count <= 10_000 else 1)
            raw.close()
    case = f"{count:,} x {dim}"
    document = DOCUMENT.get((count, dim))
    notes = (f"vectors stored in {seconds:.1f} s, {matrix.nbytes / 1e6:.0f} MB in memory",)
    return Race("vectors", case, taken, True, document, notes, found)


def faiss_of(matrix, probes):
    """The exhaustive indexes of faiss: float32, and 8 bits a number, which is not exact."""
    if faiss is None:
        return {}
    faiss.omp_set_num_threads(1)
    dim = matrix.shape[1]
    flat = faiss.IndexFlatIP(dim)
    eight = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    eight.train(matrix[:20_000])
    for index in (flat, eight):
        index.add(matrix)
    return {
        f"faiss {name}": lambda at, index=index: index.search(probes[at][None], DEPTH)[1][0]
        for name, index in (("flat", flat), ("8 bits a number, approximate", eight))
    }


def ids_of(name, find):
    if "Searcher" in name:
        return lambda at: [int(hit.entry.id[1:]) for hit in find(at).hits]
    if name.startswith("steelyard"):
        return lambda at: [int(hit.id[1:]) for hit in find(at)]
    if name.startswith("sqlite-vec"):
        return lambda at: [rowid - 1 for rowid, _ in find(at)]
    return lambda at: (find(at)[0] if name.startswith("numpy") else find(at)).tolist()


def fill(vault, space, ids, matrix):
    for begin in range(0, len(ids), BATCH):
        vault.put_vectors(space, ids[begin : begin + BATCH], matrix[begin : begin + BATCH])


def connect(path):
    raw = apsw.Connection(str(path))
    raw.enable_load_extension(True)
    raw.load_extension(sqlite_vec.loadable_path())
    return raw


def top(matrix, probe):
    scores = matrix @ probe
    best = np.argpartition(scores, -DEPTH)[-DEPTH:]
    best = best[np.argsort(-scores[best], kind="stable")]
    return best, scores[best]


def agree(contenders, probes):
    """All three find the same similarities, up to single precision."""
    for at in probes:
        ours = [found.score for found in contenders["steelyard: Vault.nearest"](at)]
        sql = [1 - distance for _, distance in contenders["sqlite-vec, SQL on the same table"](at)]
        same_scores("sqlite-vec", ours, sql, 1e-12)
        same_scores("numpy", ours, contenders["numpy: product, argpartition"](at)[1].tolist(), 1e-5)


NAME, PEER = "steelyard: layered search", "numpy: the products of three layers alone"
DOCUMENT_OF_LAYERS = ("Cortex-Mem's document: less than a second", 1000.0)


def layer_races(quick, queries):
    """As many entries as the document's claim is tested with, each with layers of its own, then in sessions."""
    count, dim, asked = (300, 16, 5) if quick else (100_000, 384, queries)
    return [layered(count, dim, asked, 1), layered(count, dim, asked, 20)]


def layered(count, dim, queries, messages):
    """A vault of `count` texts; `messages` of them share the abstract and the overview of their session."""
    matrix = synthetic.vectors(count, dim)
    probes = synthetic.probes(matrix, queries)
    system = find_system("cortex_mem")
    embedder = RecordedEmbedder(MODEL, system.reading.recipe, {str(at): row for at, row in enumerate(probes)})
    with Vault(":memory:") as vault:
        fill_layers(vault, matrix, messages)
        searcher = Searcher(vault, system.config(10, MODEL), embedder)
        found, seconds = once(lambda: searcher.search("0"))
        layers = (matrix[::messages], matrix[::messages], matrix)
        peers = {PEER: lambda at: [rows @ probes[at] for rows in layers]}
        taken = race({NAME: lambda at: searcher.search(str(at)), **peers}, range(queries), 1)
    read = ", ".join(f"{name} {found.seconds[name] * 1000:.0f} ms" for name in LAYER_RECIPES)
    slowest = float(np.percentile([clock for clock, _ in taken[NAME]], 99))
    notes = (f"p99 {slowest:.0f} ms; the first search reads the vectors in {seconds:.1f} s ({read})",)
    shape = "three layers each" if messages == 1 else f"sessions of {messages} messages"
    return Race("layers", f"{count:,} x {dim}, {shape}", taken, True, DOCUMENT_OF_LAYERS, notes)


def fill_layers(vault, matrix, messages):
    count = len(matrix)
    shifted = np.random.default_rng(1).normal(scale=0.02, size=(3, matrix.shape[1])).astype(np.float32)
    texts = [f"m{at:06d}" for at in range(count)]
    homes = texts if messages == 1 else [f"s{at:06d}" for at in range(count // messages)]
    uris = [f"cortex://session/{at // messages:06d}/timeline" for at in range(0, count, messages)]
    if messages == 1:
        vault.upsert(Entry(id_, l0="abstract", l1="overview", text="text") for id_ in texts)
    else:
        pairs = zip(homes, uris, strict=True)
        vault.upsert(Entry(id_, uri=uri, l0="abstract", l1="overview") for id_, uri in pairs)
        vault.upsert(Entry(id_, uri=f"{uris[at // messages]}/{id_}.md", text="x") for at, id_ in enumerate(texts))
    for layer, shift in zip(LAYER_RECIPES, shifted, strict=True):
        space = Space(MODEL, layer, LAYER_RECIPES[layer])
        ids, rows = (texts, matrix) if layer == "l2" else (homes, matrix[::messages])
        fill(vault, space, ids, rows + shift)
