"""Search by meaning: nearest vectors, the cosine of given candidates, and the layers of an entry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.arrays import Floats
from steelyard.embed import Vectors
from steelyard.errors import DimensionMismatchError
from steelyard.query import Query
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.kinds import Parts, RetrieverConfig, RetrieverKind, ScorerKind
from steelyard.stores.base import COSINE, Found, Readable, Space

_log = logging.getLogger(__name__)
QueryVector = Callable[[str], Vectors]
"""Text to float32[dim]; all zeros when the text says nothing to the model."""


@dataclass(frozen=True)
class VectorRetriever:
    """Nearest neighbours by a metric, see Readable.nearest; the scope acts before or after the cut."""

    store: Readable
    space: Space
    embed: QueryVector
    filter_first: bool = True
    metric: str = COSINE

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; entries without a vector are not returned."""
        vector = self.embed(query.text)
        if not vector.any():
            return []
        count = self.store.count() if depth is None else depth
        return self.store.nearest(self.space, vector, query.filters, count, self.filter_first, self.metric)


@dataclass(frozen=True)
class CosineScorer:
    """Cosine similarity of the query with each candidate, in -1..1; 0 for an entry without a vector."""

    store: Readable
    space: Space
    embed: QueryVector

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        vector = self.embed(query.text)
        stored = self.store.vectors_of(self.space, ids)
        scores = np.zeros(len(ids))
        if stored:
            known = [at for at, id_ in enumerate(ids) if id_ in stored]
            scores[known] = cosine(np.array([stored[ids[at]] for at in known]), vector)
        return scores


class LayerRetriever:
    """The cosine of one layer for every entry in scope that has it; vectors are kept in memory."""

    def __init__(self, store: Readable, space: Space, embed: QueryVector) -> None:
        self._embed = embed
        self._scope = ScopeCache(store, lambda filters: store.vectors(space, filters))

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; without a depth, as layered strategies ask, it is the whole scope."""
        ids, matrix = self._scope(query.filters)
        vector = self._embed(query.text)
        if not ids or not vector.any():
            return []
        scores = cosine(matrix, vector)
        best = np.argsort(-scores, kind="stable")[:depth]
        return [Found(ids[i], float(scores[i]), place) for place, i in enumerate(best, 1)]


def cosine(matrix: Vectors, vector: Vectors) -> Floats:
    """Cosine of every row with the vector, float64[rows]; 0 where either is all zeros.

    Raises DimensionMismatchError when the rows have another length than the vector.

    Each row is summed by itself, so its value does not depend on how many rows there are; a matrix
    product would change the last bits with the shape.
    """
    if len(matrix) and matrix.shape[1] != len(vector):
        raise DimensionMismatchError(
            f"the vault holds vectors of dimension {matrix.shape[1]}, the embedder gave {len(vector)}; "
            "run steelyard reindex to rebuild them"
        )
    rows, query = matrix.astype(np.float64), vector.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1)) * np.sqrt((query * query).sum())
    dots = (rows * query).sum(axis=1)
    result: Floats = np.where(lengths > 0, dots / np.where(lengths > 0, lengths, 1.0), 0.0)
    return result


def _vector(parts: Parts, settings: RetrieverConfig) -> VectorRetriever:
    filter_first = settings.filters != "after_cut"
    return VectorRetriever(parts.store, parts.space("text"), parts.embed, filter_first, settings.similarity)


def _of_layer(parts: Parts, name: str) -> LayerRetriever:
    space = parts.layer(name)
    if space.layer != name:
        _log.warning("there are no vectors of the layer %s, so those of the text stand for it", name)
    return LayerRetriever(parts.store, space, parts.embed)


def _layer(name: str) -> RetrieverKind:
    """A signal that compares the query with one layer of every entry."""
    return RetrieverKind(name=name, build=lambda parts, _: _of_layer(parts, name), layer=name, whole=True)


VECTOR = RetrieverKind(name="vector", build=_vector, layer="text", compares=True)
L0, L1, L2 = map(_layer, ("l0", "l1", "l2"))
COSINE_SCORE = ScorerKind(
    name="cosine",
    build=lambda parts: CosineScorer(parts.store, parts.space("text"), parts.embed),
    layer="text",
)
