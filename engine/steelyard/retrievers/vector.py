"""Vector search: nearest neighbours, the cosine of given candidates, and the layers of an entry."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats, dots
from steelyard.base.errors import ConfigError, DimensionMismatchError
from steelyard.embedders.embed import Vectors
from steelyard.memory.entry import DAY, Entry, fsrs
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.node import Option
from steelyard.retrievers.kinds import (
    UNKNOWN,
    BuildContext,
    QueryVector,
    Retriever,
    RetrieverConfig,
    RetrieverKind,
    Scorer,
    ScorerKind,
)
from steelyard.stores.base import COSINE, ReadableStore, ScoredId, ScoredIds, Space, plain_id

Fading = Callable[[float | None], Floats]
RECIPROCAL_L2 = "reciprocal_l2"
COSINES = (-1.0, 1.0)
"""The ends of a cosine."""
HALF_LIFE = 90.0
"""Days after which the importance of an entry that states no half-life is halved."""
IMPORTANCE = (
    *("importance", "updated_at", "created_at"),
    *("half_life_days", "review_count", "last_review", "stability"),
)
"""The facts of an entry from which its importance follows."""


@dataclass(frozen=True)
class _EverySpace:
    """Merges what is found in the vectors of each model; an entry is listed once, at its best score.

    Similarities are compared as they are, whatever the model.
    """

    store: ReadableStore
    spaces: Sequence[tuple[Space, QueryVector]]
    filter_first: bool = True

    def retrieve(self, query: Query, depth: int | None) -> Sequence[ScoredId]:
        """See Retriever.retrieve; entries without a vector are not returned."""
        if len(self.spaces) == 1:
            return self._found(*self.spaces[0], query, depth)
        asked = query if self.filter_first else replace(query, filters=EVERYTHING)
        hits = [hit for space, embed in self.spaces for hit in self._found(space, embed, asked, depth)]
        best: dict[str, ScoredId] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.score, hit.id)):
            best.setdefault(plain_id(hit.id), hit)
        listed = [replace(hit, position=place) for place, hit in enumerate(list(best.values())[:depth], 1)]
        if self.filter_first:
            return listed
        inside = self.store.within([hit.id for hit in listed], query.filters)
        return [hit for hit in listed if hit.id in inside]

    def _found(self, space: Space, embed: QueryVector, query: Query, depth: int | None) -> Sequence[ScoredId]:
        raise NotImplementedError


@dataclass(frozen=True)
class VectorRetriever(_EverySpace):
    """Finds nearest neighbours by a metric (see Readable.nearest); the scope acts before or after the cut."""

    metric: str = COSINE

    def _found(self, space: Space, embed: QueryVector, query: Query, depth: int | None) -> list[ScoredId]:
        vector = embed(query.embedded)
        if not vector.any():
            return []
        count = self.store.count() if depth is None else depth
        metric = "l2" if self.metric == RECIPROCAL_L2 else self.metric
        hits = self.store.nearest(space, vector, query.filters, count, self.filter_first, metric)
        return [replace(h, score=1 / (2 - h.score)) for h in hits] if self.metric == RECIPROCAL_L2 else hits

    def expect(self, queries: Sequence[Query]) -> None:
        """See Retriever."""
        for space, embed in self.spaces:
            self.store.expect(space, [embed(query.embedded) for query in queries])

    def ends(self, query: Query) -> tuple[float, float]:
        """See Retriever; what a distance leaves of 1 has no lower end."""
        return {COSINE: COSINES, RECIPROCAL_L2: (0.0, 1.0)}.get(self.metric, (math.nan, 1.0))


@dataclass(frozen=True)
class LayerRetriever(_EverySpace):
    """Scores one layer of every entry in scope that has it, by cosine; vectors are kept in memory.

    With a `lift` it adds that many times how important an entry still is (spec-kit's code), see `fading`. The
    store is read once a scope, not once a directory, and not again until it changes. Without a depth, as layered
    strategies ask, the list is the whole scope.
    """

    lift: float = 0.0

    def _found(self, space: Space, embed: QueryVector, query: Query, depth: int | None) -> Sequence[ScoredId]:
        def read() -> tuple[tuple[str, ...], Vectors, Floats, Fading]:
            ids, matrix = self.store.vectors(space, query.filters)
            facts = self.store.get(ids, IMPORTANCE) if self.lift else ()
            return tuple(ids), matrix, np.sqrt(dots(matrix)), fading(facts)

        key = space, query.filters, bool(self.lift)
        ids, matrix, lengths, importance = self.store.cache.get("layer", key, read)
        vector = embed(query.embedded)
        if not ids or not vector.any():
            return []
        scores = cosine(matrix, vector, lengths)
        if self.lift:
            scores = scores + self.lift * importance(query.asked_at)
        order = np.argsort(-scores)
        if not np.diff(scores[order]).all():  # a sort that keeps the order of ties takes twice as long
            order = np.argsort(-scores, kind="stable")
        listed = ScoredIds(ids, scores, order)
        return listed if depth is None else listed[:depth]

    def ends(self, query: Query) -> tuple[float, float]:
        """See Retriever; importance lifts a cosine beyond them."""
        return UNKNOWN if self.lift else COSINES


def fading(entries: Sequence[Entry]) -> Fading:
    """What is left of each entry's importance at a clock (seconds UTC; None: nothing has faded), float64[n].

    It is ``importance / 10``, 0.5 where none is given, and fades by FSRS since the last review where there were
    reviews, else by half in the half-life since the last update; without a date it does not fade.
    """

    def facts(e: Entry) -> tuple[float | None, ...]:
        reviewed = bool(e.review_count) and e.last_review is not None
        since = e.last_review if reviewed else e.updated_at or e.created_at
        stated = 0.5 if e.importance is None else e.importance / 10.0
        return stated, since, reviewed, e.stability or 1.0, e.half_life_days or HALF_LIFE

    rows = np.array(list(map(facts, entries)), dtype=np.float64)  # None becomes NaN
    stated, since, reviewed, stability, half_life = rows.reshape(-1, 5).T.copy()

    def at(clock: float | None) -> Floats:
        days = np.zeros(len(since)) if clock is None else np.fmax(0.0, (clock - since) / DAY)
        return stated * np.where(reviewed > 0, fsrs(days, stability), 0.5 ** (days / half_life))

    return at


@dataclass(frozen=True)
class Unindexed:
    """Entries in scope whose text has no vector of l2 yet, at 0."""

    store: ReadableStore
    spaces: tuple[Space, ...]

    def retrieve(self, query: Query, depth: int | None) -> list[ScoredId]:
        """See Retriever.retrieve; by ascending id."""
        read = partial(self.store.unembedded, self.spaces, query.filters)
        ids = self.store.cache.get("unembedded", (self.spaces, query.filters), read)
        return [ScoredId(id_, 0.0, place) for place, id_ in enumerate(ids[:depth], 1)]


def cosines(store: ReadableStore, spaces: Sequence[tuple[Space, QueryVector]]) -> Scorer:
    """The cosine of the query and each candidate, in -1..1; 0 for an entry without a vector.

    An entry has vectors of only one of the models.
    """

    def score(query: Query, ids: Sequence[str]) -> Floats:
        scores = np.zeros(len(ids))
        for space, embed in spaces:
            vector, stored = embed(query.embedded), store.vectors_of(space, ids)
            known = [row for row, id_ in enumerate(ids) if id_ in stored and scores[row] == 0]
            if known:
                scores[known] = cosine(np.array([stored[ids[row]] for row in known]), vector)
        return scores

    return score


def _inside(parts: BuildContext) -> Scorer:
    """1 for a candidate that the query's own filters admit, else 0."""

    def score(query: Query, ids: Sequence[str]) -> Floats:
        inside = parts.store.within(ids, query.filters) if query.filters else set(ids)
        return np.array([float(id_ in inside) for id_ in ids], dtype=np.float64)

    return score


# Numbers


def cosine(matrix: Vectors, vector: Vectors, lengths: Floats | None = None) -> Floats:
    """The cosine of every row of float32[rows, dim] and float32[dim], float64[rows]; 0 where either is all zeros.

    Each row is summed separately, so its value does not depend on the number of rows; the last bits of a
    matrix product depend on its shape. `lengths` are those of the rows, float64[rows], where they are known.
    Raises DimensionMismatchError when the rows and the vector differ in length.
    """
    if len(matrix) and matrix.shape[1] != len(vector):
        raise DimensionMismatchError(
            f"the vault has vectors of dimension {matrix.shape[1]}, the embedder returned {len(vector)}; "
            "run steelyard index VAULT --rebuild to rebuild them"
        )
    query = vector.astype(np.float64)
    both = (np.sqrt(dots(matrix)) if lengths is None else lengths) * np.sqrt((query * query).sum())
    return np.where(both > 0, dots(matrix, query) / np.where(both > 0, both, 1.0), 0.0)


# Declarations


def _vector(parts: BuildContext, settings: RetrieverConfig) -> Retriever:
    first, lift = settings.filters != "after_cut", VECTOR.values(settings)["lift"]
    if lift and settings.similarity != COSINE:
        raise ConfigError(f"lift is {lift:g} but similarity is {settings.similarity}; lift needs cosine")
    if lift:
        return LayerRetriever(parts.store, parts.vectors("text"), first, lift)
    return VectorRetriever(parts.store, parts.vectors("text"), first, settings.similarity)


def _layer(name: str) -> RetrieverKind:
    """Declare a signal that compares the query with one layer of every entry."""

    def build(parts: BuildContext, settings: RetrieverConfig) -> Retriever:
        return LayerRetriever(parts.store, parts.vectors(name), settings.filters != "after_cut")

    return RetrieverKind(name=name, build=build, layer=name, uncut=True, bounded=True)


LIFT = Option(
    "lift", 0, 0, 1000, "What an entry's importance adds to its similarity; all vectors are then compared"
)
VECTOR = RetrieverKind(name="vector", build=_vector, layer="text", compares=True, bounded=True, parameters=(LIFT,))
CONSTITUTIONAL = RetrieverKind(
    name="constitutional",
    build=_vector,
    layer="text",
    compares=True,
    separate_scope=Filters.of({"importance_tier": "constitutional"}),
)
"""Entries of the highest tier, which system-spec-kit's code searches apart from the others."""
L0, L1, L2 = map(_layer, ("l0", "l1", "l2"))
UNINDEXED = RetrieverKind(
    name="unindexed",
    build=lambda parts, _: Unindexed(parts.store, tuple(space for space, _ in parts.vectors("l2"))),
    uncut=True,
)
COSINE_SCORE = ScorerKind(
    name="cosine",
    build=lambda parts: cosines(parts.store, parts.vectors("text")),
    layer="text",
    ends=COSINES,
)
INSIDE = ScorerKind(name="inside", build=_inside)
