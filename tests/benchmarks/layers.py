"""Live layered search: abstracts, overviews and details of many directories, end to end."""

import numpy as np
import synthetic
from timing import Race, once, race

from steelyard.embedders.embed import LAYER_RECIPES, RecordedEmbedder
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system

MODEL = "synthetic"
NAME, PEER = "steelyard: layered search", "numpy: the products of three layers alone"
BATCH = 2000
DOCUMENT = ("Cortex-Mem's document: less than a second", 1000.0)


def races(quick, queries):
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
        fill(vault, matrix, messages)
        searcher = Searcher(vault, system.config(10, MODEL), embedder)
        found, seconds = once(lambda: searcher.search("0"))
        layers = (matrix[::messages], matrix[::messages], matrix)
        peers = {PEER: lambda at: [rows @ probes[at] for rows in layers]}
        taken = race({NAME: lambda at: searcher.search(str(at)), **peers}, range(queries), 1)
    read = ", ".join(f"{name} {found.seconds[name] * 1000:.0f} ms" for name in LAYER_RECIPES)
    slowest = float(np.percentile([clock for clock, _ in taken[NAME]], 99))
    notes = (f"p99 {slowest:.0f} ms; the first search reads the vectors in {seconds:.1f} s ({read})",)
    shape = "three layers each" if messages == 1 else f"sessions of {messages} messages"
    return Race("layers", f"{count:,} x {dim}, {shape}", taken, True, DOCUMENT, notes)


def fill(vault, matrix, messages):
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
        for begin in range(0, len(ids), BATCH):
            vault.put_vectors(space, ids[begin : begin + BATCH], rows[begin : begin + BATCH] + shift)
