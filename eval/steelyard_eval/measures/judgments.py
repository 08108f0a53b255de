"""Ranked lists, and graded judgments of them, in the form that measures read."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices, Ints

UNJUDGED = -1  # the grade of a pair that is not judged


@dataclass(frozen=True)
class Judgments:
    """The qrels of Q queries as `evaluate` reads them; build it with `Judgments.of`, once per data set."""

    key: Indices  # int64[J]: the judged pairs that a list can contain: query * width + entry, ascending
    grade: NDArray[np.int32]  # int32[J]: their grades, at least 0
    width: int  # how many entries a list can choose from
    # int64[Q]: judged and relevant (grade >= 1) ids of each query, those outside `entries` included. Leave the
    # queries with `judged == 0` out of a mean: they have no judgments
    judged: Indices
    relevant: Indices
    start: Indices  # int64[Q]: `ideal[start[q] + k - 1]` is query q's ideal DCG at k, for k up to `relevant[q]`
    ideal: Floats  # float64[sum(relevant)]
    tokens: Indices | None = None  # int64[width]: what each entry takes of a context; None where it is not known

    @classmethod
    def of(
        cls,
        qrels: Mapping[str, Mapping[str, int]],
        queries: Sequence[str],
        entries: Sequence[str],
        tokens: Mapping[str, int] | None = None,
    ) -> "Judgments":
        """Return the judgments of `queries`, whose lists contain indices of `entries`; `tokens` as a data set has.

        Judged ids that are not in `entries` still count in totals and ideals, as relevant entries that no list
        returned. A grade below 0 counts as 0: judged, without gain.
        """
        width, index = len(entries), {name: i for i, name in enumerate(entries)}
        rows = [qrels.get(query, {}) for query in queries]
        judged = np.array([len(row) for row in rows], dtype=np.int64)
        at = np.array([index.get(name, -1) for row in rows for name in row], dtype=np.int64)
        grade = np.array([grade for row in rows for grade in row.values()], dtype=np.int64)
        key = np.repeat(np.arange(len(rows)), judged) * width + at
        order = np.flatnonzero(at >= 0)
        order = order[np.argsort(key[order])]
        ideals = [_ideal(row.values()) for row in rows]
        relevant = np.array([ideal.size for ideal in ideals], dtype=np.int64)
        return cls(
            key=key[order],
            grade=np.maximum(grade[order], 0).astype(np.int32),
            width=width,
            judged=judged,
            relevant=relevant,
            start=np.cumsum(relevant) - relevant,
            ideal=np.concatenate([*ideals, np.zeros(0)]),
            tokens=None if tokens is None else np.array([tokens.get(name, 0) for name in entries], dtype=np.int64),
        )

    @classmethod
    def none(cls, queries: int, entries: int) -> "Judgments":
        """No judgments of so many queries and entries, as `of` makes them of nothing."""
        empty, zeros = np.zeros(0, dtype=np.int64), np.zeros(queries, dtype=np.int64)
        return cls(empty, empty.astype(np.int32), entries, zeros, zeros, zeros, np.zeros(0))

    def ideal_at(self, cutoff: int | None) -> Floats:
        """Return float64[Q], the DCG of the best possible list cut at `cutoff`; 0 where nothing is relevant."""
        depth = self.relevant if cutoff is None else np.minimum(self.relevant, cutoff)
        values = np.zeros(self.relevant.size)
        some = depth > 0
        values[some] = self.ideal[(self.start + depth - 1)[some]]
        return values

    def grades(self, query: Indices, entry: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the grade of each (query, entry) pair, -1 where the pair is not judged."""
        if not self.key.size:
            return np.full(query.size, UNJUDGED, dtype=np.int32)
        wanted = query * self.width + entry
        place = np.minimum(np.searchsorted(self.key, wanted), self.key.size - 1)
        return np.where(self.key[place] == wanted, self.grade[place], UNJUDGED).astype(np.int32)


@dataclass(frozen=True)
class Ranked:
    """Ranked lists of Q queries, best first, as CSR: `entry` indexes `entries`, the ids sorted by bytes."""

    queries: tuple[str, ...]
    entries: tuple[str, ...]
    offsets: Indices
    entry: Ints

    @classmethod
    def of(cls, queries: Sequence[str], lists: Sequence[Sequence[str]]) -> "Ranked":
        """Make ranked lists from one list of ids for each query."""
        entries = sorted({id_ for ids in lists for id_ in ids}, key=str.encode)
        code = {id_: i for i, id_ in enumerate(entries)}
        flat = np.array([code[id_] for ids in lists for id_ in ids], dtype=np.int32)
        return cls(tuple(queries), tuple(entries), np.cumsum([0, *map(len, lists)], dtype=np.int64), flat)

    def lists(self) -> list[list[str]]:
        """The ids of every query, best first."""
        ends = self.offsets.tolist()
        return [[self.entries[entry] for entry in self.entry[a:b].tolist()] for a, b in itertools.pairwise(ends)]

    def within(self, tokens: int, sizes: Mapping[str, int]) -> "Ranked":
        """The lists up to the last place that so many tokens hold; `sizes` has what entries take, by id."""
        taken = np.array([sizes.get(name, 0) for name in self.entries], dtype=np.int64)
        offsets, entry = within(self.offsets, self.entry, taken, tokens)
        return Ranked(self.queries, self.entries, offsets, entry.astype(np.int32))

    @property
    def query(self) -> Indices:
        """int64[R]: the query of each place."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    def relevant(self, qrels: Mapping[str, Mapping[str, int]]) -> Bools:
        """bool[R]: the places of relevant entries."""
        return Judgments.of(qrels, self.queries, self.entries).grades(self.query, self.entry) >= 1


def condensed(
    offsets: Indices, entry: NDArray[np.integer], judgments: Judgments
) -> tuple[Indices, NDArray[np.integer]]:
    """The lists without the entries that were not judged (Sakai, SIGIR 2007); arguments as in `evaluate`."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    kept = judgments.grades(query, entry) != UNJUDGED
    return np.concatenate([[0], np.cumsum(kept)])[offsets], entry[kept]


def within(
    offsets: Indices, entry: NDArray[np.integer], sizes: Indices, tokens: int
) -> tuple[Indices, NDArray[np.integer]]:
    """The lists up to the last place that so many tokens hold; `sizes` int64[entries] are those of each entry."""
    used = np.concatenate([[0], np.cumsum(sizes[entry])])
    kept = used[1:] - np.repeat(used[offsets[:-1]], np.diff(offsets)) <= tokens
    return np.concatenate([[0], np.cumsum(kept)])[offsets], entry[kept]


def recall_loss(query: Indices, dropped: NDArray[np.bool_]) -> Floats:
    """Of each list that holds relevant entries, the share of them that is dropped; float64[lists, F].

    `query`: int64[R]: the query of each relevant entry, ascending; `dropped`: bool[R, F]: those that F cases drop.
    """
    begin = np.flatnonzero(np.diff(query, prepend=-1))
    if not len(begin):
        return np.zeros((0, dropped.shape[1]))
    counts = np.diff(begin, append=len(query))
    return np.asarray(np.add.reduceat(dropped, begin, axis=0, dtype=np.int64) / counts[:, None])


def _ideal(grades: Iterable[int]) -> Floats:
    gains = np.array(sorted((g for g in grades if g >= 1), reverse=True), dtype=np.float64)
    return np.cumsum(gains / discounts(gains.size))


def discounts(depth: int) -> Floats:
    """float64[depth]: log2(rank + 1) of the ranks from 1."""
    return np.log2(np.arange(2, depth + 2, dtype=np.float64))
