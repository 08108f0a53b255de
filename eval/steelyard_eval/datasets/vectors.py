"""The vectors that a data set has of its own, alone or beside a model that embeds what they lack."""

import re
from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import EmbedderError
from steelyard.embedders.embed import BATCH, LAYER_RECIPES, CachedEmbedder, Kind, RecordedEmbedder, Vectors, unit
from steelyard.memory.text import render
from steelyard_eval.common.console import LOGGER
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.dataset import Dataset

NAMES_ELSEWHERE = {"minilm": "all-MiniLM-L6-v2"}


class CompletedEmbedder(CachedEmbedder):
    """Takes the vectors of entries from a data set; others, and those of queries, are embedded by their model.

    Recorded vectors do not enter the cache, as other data sets read it. `recipe` is the template of all texts.
    """

    def __init__(self, opened: CachedEmbedder, known: RecordedEmbedder, recipe: str | None) -> None:
        vars(self).update(vars(opened), recipe=recipe)
        self._known = {text: row for text, row in known.vectors.items() if row.any()}
        self._size = len(next(iter(self._known.values())))

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; EmbedderError, too, for a model that is not that of the data set."""
        asked = [text for text in texts if kind == "query" or text not in self._known]
        found = dict(zip(asked, super().embed(asked, kind), strict=True))
        if {len(row) for row in found.values()} - {self._size}:
            raise EmbedderError(
                f"{self.model} is another model than that of the data set's vectors, which have dimension "
                f"{self._size}; name theirs, or take their file out of the data set"
            )
        rows = [found[text] if text in found else self._known[text] for text in texts]
        return unit(np.array(rows, dtype=np.float32))


def completed(dataset: Dataset, opened: CachedEmbedder, recipe: str | None = None) -> CachedEmbedder:
    """The embedder, with what a data set has of its model where that is of entries alone; says what it will cost.

    Names of models are compared without a provider before a slash.
    """
    own = re.sub(r"[^\w.-]+", "-", opened.model.rpartition("/")[2])
    name = next((one for one in (own, NAMES_ELSEWHERE.get(own, "")) if (one, "text") in dataset.vectors), "")
    rows = dataset.vectors[name, "text"] if name and name not in dataset.query_vectors else None
    rows = None if rows is None or not rows.any() else rows
    if "/" in opened.model:  # somebody else's machine
        new = len(dataset.entries) if rows is None else int((~rows.any(axis=1)).sum())
        calls = ceil(new / BATCH) + ceil(len(dataset.queries) / BATCH)
        queries = counted(len(dataset.queries), "query", "queries")
        most = f"{new} of {len(dataset.entries)} entries and {queries} in {counted(calls, 'call')}"
        LOGGER.info(f"{opened.model} embeds {most} per recipe")  # fewer where the cache has some
    return opened if rows is None else CompletedEmbedder(opened, recorded(dataset, name), recipe)


def recorded(dataset: Dataset, model: str) -> RecordedEmbedder:
    """The recorded vectors of one model by text: entries by the template, layers, queries if they have any."""
    vectors: dict[str, NDArray[np.float16]] = {}
    for query, row in zip(dataset.queries, dataset.query_vectors.get(model, ()), strict=False):
        vectors.setdefault(query.text, row)
    for layer, recipe in (*LAYER_RECIPES.items(), ("text", dataset.recipe)):
        rows = dataset.vectors.get((model, layer))
        for entry, row in zip(dataset.entries, rows, strict=True) if rows is not None else ():
            text = render(recipe, entry)
            if text not in vectors or not vectors[text].any():  # a layer that is absent has a row of zeros
                vectors[text] = row
    return RecordedEmbedder(model, dataset.recipe, vectors)
