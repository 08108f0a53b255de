"""Vector search: nearest neighbours, the cosine of given candidates, and the layers of an entry."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError, DimensionMismatchError
from steelyard.embedders.embed import Vectors
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.memory.query import Query
from steelyard.node import Option
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.dots import dots
from steelyard.retrievers.importance import Importance
from steelyard.retrievers.kinds import (
    UNKNOWN,
    Bounded,
    Foreseeing,
    Parts,
    QueryVector,
    Retriever,
    RetrieverConfig,
    RetrieverKind,
    Scorer,
    ScorerKind,
)
from steelyard.stores.base import COSINE, Found, Readable, ScoredIds, Space
from steelyard.stores.federation import plain_id

_log = logging.getLogger(__name__)
COSINES = (-1.0, 1.0)
"""The ends of a cosine."""


@dataclass(frozen=True)
class VectorRetriever:
    """Finds nearest neighbours by a metric (see Readable.nearest); the scope acts before or after the cut."""

    store: Readable
    space: Space
    embed: QueryVector
    filter_first: bool = True
    metric: str = COSINE

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; entries without a vector are not returned."""
        vector = self.embed(query.embedded)
        if not vector.any():
            return []
        count = self.store.count() if depth is None else depth
        return self.store.nearest(self.space, vector, query.filters, count, self.filter_first, self.metric)

    def expect(self, queries: Sequence[Query]) -> None:
        """See Foreseeing.expect."""
        self.store.expect(self.space, [self.embed(query.embedded) for query in queries])

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends; what a distance leaves of 1 has no lower end."""
        return COSINES if self.metric == COSINE else (math.nan, 1.0)


@dataclass(frozen=True)
class CosineScorer:
    """Scores the cosine of the query and each candidate, in -1..1; 0 for an entry without a vector."""

    store: Readable
    space: Space
    embed: QueryVector

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        vector = self.embed(query.embedded)
        stored = self.store.vectors_of(self.space, ids)
        scores = np.zeros(len(ids))
        if stored:
            known = [row for row, id_ in enumerate(ids) if id_ in stored]
            scores[known] = cosine(np.array([stored[ids[row]] for row in known]), vector)
        return scores


class LayerRetriever:
    """Scores one layer of every entry in scope that has it, by cosine; vectors are kept in memory.

    The store is read once a scope, not once a directory, and not again until it changes.
    """

    def __init__(self, store: Readable, space: Space, embed: QueryVector) -> None:
        self._embed = embed
        self._rows = ScopeCache(store, lambda filters: _Rows.of(*store.vectors(space, filters)))

    def retrieve(self, query: Query, depth: int | None) -> Sequence[Found]:
        """See Retriever.retrieve; without a depth, as layered strategies ask, it is the whole scope."""
        rows, vector = self._rows(query.filters), self._embed(query.embedded)
        if not rows.ids or not vector.any():
            return []
        scores = self._scores(query, rows, vector)
        listed = ScoredIds(rows.ids, scores, _best_first(scores))
        return listed if depth is None else listed[:depth]

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends."""
        return COSINES

    def _scores(self, query: Query, rows: _Rows, vector: Vectors) -> Floats:
        return rows.cosine(vector)


class LiftedRetriever(LayerRetriever):
    """Every entry with a vector, by cosine plus `lift` times how important it still is (spec-kit's code).

    Importance is that of `Importance`, and fades with the query's clock; facts are kept in memory, too.
    """

    def __init__(self, store: Readable, space: Space, embed: QueryVector, lift: float) -> None:
        super().__init__(store, space, embed)
        self._lift = lift
        self._importance = ScopeCache(
            store, lambda filters: Importance.of(store.get(self._rows(filters).ids, Importance.FIELDS))
        )

    def _scores(self, query: Query, rows: _Rows, vector: Vectors) -> Floats:
        return rows.cosine(vector) + self._lift * self._importance(query.filters).at(query.asked_at)

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends; importance lifts a cosine beyond them."""
        return UNKNOWN


@dataclass(frozen=True)
class _Rows:
    """The vectors of a scope, with their lengths, which no query changes."""

    ids: tuple[str, ...]
    matrix: Vectors
    lengths: Floats

    @classmethod
    def of(cls, ids: Sequence[str], matrix: Vectors) -> _Rows:
        return cls(tuple(ids), matrix, np.sqrt(dots(matrix)))

    def cosine(self, vector: Vectors) -> Floats:
        """See `cosine`, of which these are the same bits."""
        _check_dimension(self.matrix, vector)
        query = vector.astype(np.float64)
        return _quotient(dots(self.matrix, query), self.lengths * np.sqrt((query * query).sum()))


class Unindexed:
    """Entries in scope whose text has no vector of l2 yet, at 0."""

    def __init__(self, store: Readable, spaces: Sequence[Space]) -> None:
        self._scope = ScopeCache(store, lambda filters: store.unembedded(spaces, filters))

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; by ascending id."""
        return [Found(id_, 0.0, place) for place, id_ in enumerate(self._scope(query.filters)[:depth], 1)]


class InsideScorer:
    """1 for a candidate that the query's own filters admit, else 0."""

    def __init__(self, store: Readable) -> None:
        self._store = store

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        if not query.filters:
            return np.ones(len(ids))
        inside = self._store.within(ids, query.filters)
        return np.array([float(id_ in inside) for id_ in ids], dtype=np.float64)


@dataclass(frozen=True)
class EverySpace:
    """Merges retrievers that each search the vectors of one model; an entry is listed once, at its best score."""

    store: Readable
    parts: Sequence[Retriever]
    filter_first: bool = True

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; similarities are compared as they are, whatever the model."""
        asked = query if self.filter_first else replace(query, filters=EVERYTHING)
        hits = [hit for part in self.parts for hit in part.retrieve(asked, depth)]
        best: dict[str, Found] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.score, hit.id)):
            best.setdefault(plain_id(hit.id), hit)
        listed = [replace(hit, position=place) for place, hit in enumerate(list(best.values())[:depth], 1)]
        if self.filter_first:
            return listed
        inside = self.store.within([hit.id for hit in listed], query.filters)
        return [hit for hit in listed if hit.id in inside]

    def expect(self, queries: Sequence[Query]) -> None:
        """See Foreseeing.expect."""
        for part in self.parts:
            if isinstance(part, Foreseeing):
                part.expect(queries)

    def ends(self, query: Query) -> tuple[float, float]:
        """See Bounded.ends; all parts measure alike."""
        return UNKNOWN if not isinstance(self.parts[0], Bounded) else self.parts[0].ends(query)


@dataclass(frozen=True)
class SumOfSpaces:
    """Merges scorers that each read the vectors of one model; an entry has vectors of only one of them."""

    parts: Sequence[Scorer]

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        total = np.zeros(len(ids))
        for part in self.parts:
            total = np.where(total == 0, part.score(query, ids), total)
        return total


def cosine(matrix: Vectors, vector: Vectors) -> Floats:
    """Compute the cosine of every row and a vector, float64[rows]; 0 where either is all zeros.

    Each row is summed separately, so its value does not depend on the number of rows; the last bits of a
    matrix product depend on its shape.

    Parameters
    ----------
    matrix : float32[rows, dim]
    vector : float32[dim]

    Raises
    ------
    DimensionMismatchError
        When the rows and the vector differ in length.
    """
    return _Rows.of((), matrix).cosine(vector)


def _best_first(scores: Floats) -> Indices:
    """The rows by falling score, ties in order; a sort that keeps their order takes twice as long."""
    order = np.argsort(-scores)
    ranked = scores[order]
    return order if (ranked[1:] != ranked[:-1]).all() else np.argsort(-scores, kind="stable")


def _quotient(dots: Floats, lengths: Floats) -> Floats:
    result: Floats = np.where(lengths > 0, dots / np.where(lengths > 0, lengths, 1.0), 0.0)
    return result


def _check_dimension(matrix: Vectors, vector: Vectors) -> None:
    if len(matrix) and matrix.shape[1] != len(vector):
        raise DimensionMismatchError(
            f"the vault has vectors of dimension {matrix.shape[1]}, the embedder returned {len(vector)}; "
            "run steelyard index VAULT --rebuild to rebuild them"
        )


def _vector(parts: Parts, settings: RetrieverConfig) -> Retriever:
    first = settings.filters != "after_cut"
    lift = VECTOR.values(settings)["lift"]
    if lift and settings.similarity != COSINE:
        raise ConfigError(f"lift is {lift:g} and similarity {settings.similarity}; importance lifts cosines alone")
    made: list[Retriever] = [
        LiftedRetriever(parts.store, space, embed, lift)
        if lift
        else VectorRetriever(parts.store, space, embed, first, settings.similarity)
        for space, embed in parts.vectors("text")
    ]
    return made[0] if len(made) == 1 else EverySpace(parts.store, made, first)


_told: WeakKeyDictionary[Readable, set[str]] = WeakKeyDictionary()
"""By store, the missing layers that were logged, so that each is logged once."""


def without_layer(name: str) -> str:
    """What is said where other layers have vectors and this one has none."""
    return (
        f"there are no vectors of the layer {name} (l0: abstracts, l1: overviews, l2: whole entries), so those of "
        "the text stand in; this concerns layered search (cortex_mem) alone"
    )


def _of_layer(parts: Parts, settings: RetrieverConfig, name: str) -> Retriever:
    made: list[Retriever] = []
    for space, embed in parts.vectors(name):
        if space.layer != name and _layered(parts) and name not in _told.setdefault(parts.store, set()):
            _told[parts.store].add(name)
            _log.warning(without_layer(name))
        made.append(LayerRetriever(parts.store, space, embed))
    return made[0] if len(made) == 1 else EverySpace(parts.store, made, settings.filters != "after_cut")


def _layered(parts: Parts) -> bool:
    """Whether there are vectors of any layer; where there are none, nobody misses one."""
    return any(space.layer in ("l0", "l1") for space, _ in parts.store.spaces())


def _layer(name: str) -> RetrieverKind:
    """Declare a signal that compares the query with one layer of every entry."""
    return RetrieverKind(
        name=name,
        build=lambda parts, settings: _of_layer(parts, settings, name),
        layer=name,
        whole=True,
        bounded=True,
    )


def _cosine(parts: Parts) -> Scorer:
    made = [CosineScorer(parts.store, space, embed) for space, embed in parts.vectors("text")]
    return made[0] if len(made) == 1 else SumOfSpaces(made)


UNINDEXED = RetrieverKind(
    name="unindexed",
    build=lambda parts, _: Unindexed(parts.store, [space for space, _ in parts.vectors("l2")]),
    whole=True,
)
INSIDE = ScorerKind(name="inside", build=lambda parts: InsideScorer(parts.store))
LIFT = Option(
    "lift", 0, 0, 1000, "What an entry's importance adds to its similarity; all vectors are then compared"
)
VECTOR = RetrieverKind(name="vector", build=_vector, layer="text", compares=True, bounded=True, parameters=(LIFT,))
CONSTITUTIONAL = RetrieverKind(
    name="constitutional",
    build=_vector,
    layer="text",
    compares=True,
    aside=Filters.of({"importance_tier": "constitutional"}),
)
"""Entries of the highest tier, which system-spec-kit's code searches apart from the others."""
L0, L1, L2 = map(_layer, ("l0", "l1", "l2"))
COSINE_SCORE = ScorerKind(name="cosine", build=_cosine, layer="text", ends=COSINES)
