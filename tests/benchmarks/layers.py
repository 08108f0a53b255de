"""Live layered search: abstracts, overviews and details of many directories, end to end."""

import numpy as np
import synthetic
from timing import Race, once, race

from steelyard.embed import LAYER_RECIPES, RecordedEmbedder
from steelyard.entry import Entry
from steelyard.search import Searcher
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system

MODEL = "synthetic"
BATCH = 2000
DOCUMENT = ("Cortex-Mem's document: less than a second", 1000.0)


def races(quick: bool, queries: int) -> list[Race]:
    """One size: as many directories as the document's claim is tested with."""
    return [layered(300, 16, 5)] if quick else [layered(100_000, 384, queries)]


def layered(count: int, dim: int, queries: int) -> Race:
    """A vault in which every entry is a directory of its own, with vectors of three layers."""
    matrix = synthetic.vectors(count, dim)
    probes = synthetic.probes(matrix, queries)
    shifted = np.random.default_rng(1).normal(scale=0.02, size=(3, dim)).astype(np.float32)
    system = find_system("cortex_mem")
    vectors = {str(at): row for at, row in enumerate(probes)}
    embedder = RecordedEmbedder(MODEL, system.reading.recipe, vectors)
    with Vault(":memory:") as vault:
        vault.upsert(Entry(f"m{at:06d}", l0="abstract", l1="overview", text="text") for at in range(count))
        for layer, shift in zip(LAYER_RECIPES, shifted, strict=True):
            space = Space(MODEL, layer, LAYER_RECIPES[layer])
            for begin in range(0, count, BATCH):
                part = matrix[begin : begin + BATCH] + shift
                vault.put_vectors(space, [f"m{at:06d}" for at in range(begin, begin + len(part))], part)
        searcher = Searcher(vault, system.config(10, MODEL), embedder)
        found, seconds = once(lambda: searcher.search("0"))
        taken = race({"steelyard: layered search": lambda at: searcher.search(str(at))}, range(queries), 1)
    layers = ", ".join(f"{name} {found.seconds[name] * 1000:.0f} ms" for name in LAYER_RECIPES)
    slowest = float(np.percentile([clock for clock, _ in taken["steelyard: layered search"]], 99))
    notes = (f"p99 {slowest:.0f} ms; the first search reads the vectors in {seconds:.1f} s ({layers})",)
    return Race("layers", f"{count:,} x {dim}, three layers", taken, True, DOCUMENT, notes)
