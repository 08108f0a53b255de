"""``ts_rank`` with its default weights and normalisation 0, in single precision as PostgreSQL computes it.

Every lexeme of a text has the weight w = 0.1. A query of one lexeme, or one that is an *or* or a negation as a
whole, adds ``w (1 + 1/4 + ... + 1/n^2) / 1.64493406685`` for each of its lexemes that occurs n times, and divides
by the number of its distinct lexemes, including negated ones. An *and* or a phrase uses pairs of positions
of different lexemes: a pair at distance d > 0 counts ``c = w sqrt(g)`` with ``g = 1 / (1.005 + 0.05 exp(d/1.5 -
2))``, or 1e-30 beyond 100, and all pairs ``1 - (1 - c1)(1 - c2)...``; without a pair the rank is 1e-20.

Source: the notes on MoltNet, section ts_rank. The places where PostgreSQL 15 rounds, and its order of lexemes
(by bytes), were found by comparing bits. Ranks that are equal here are equal there, so ties are the same.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from functools import lru_cache
from itertools import product

from steelyard.retrievers.tsearch.english import MAX_POSITIONS, TsVector
from steelyard.retrievers.tsearch.expression import And, LexemePhrase, Node, lexemes_of

NO_PAIR = 1e-20
"""The rank of an *and* without a pair of positions; it keeps ``deploy -staging`` above no match."""

_FAR = 100


def single(value: float) -> float:
    """Round to single precision."""
    return array("f", [value])[0]


_WEIGHT = single(0.1)
_ZETA_2 = 1.64493406685


def rank(node: Node, vector: TsVector) -> float:
    """Compute ``ts_rank(vector, node)``, 0 or more, without checking that the vector matches.

    >>> from steelyard.retrievers.tsearch.expression import Lexeme
    >>> rank(Lexeme("cach"), {"cach": (3,)})
    0.0607927106320858
    """
    return ranker(node)(vector)


def ranker(node: Node) -> Callable[[TsVector], float]:
    """Return a function from vectors to ranks, to rank many texts for one query."""
    items = sorted(set(lexemes_of(node)))
    by_pairs = isinstance(node, And | LexemePhrase) and len(items) > 1

    def score(vector: TsVector) -> float:
        present = [vector[item] for item in items if item in vector]
        return _of_pairs(present) if by_pairs else _of_counts(tuple(map(len, present)), len(items))

    return score


def _count_table() -> list[float]:
    """The contribution of a lexeme that is present n times, for n from 0."""
    table, total = [0.0], 0.0
    for n in range(1, MAX_POSITIONS + 1):
        total = single(total + single(_WEIGHT / (n * n)))
        table.append(single(single(_WEIGHT + total) - _WEIGHT) / _ZETA_2)
    return table


def _pair_table() -> list[float]:
    """The contribution of a pair at distance d, for d from 0 to _FAR + 1; the last applies to all beyond."""
    near = [single(1 / (1.005 + 0.05 * math.exp(d / 1.5 - 2))) for d in range(_FAR + 1)]
    weights = single(_WEIGHT * _WEIGHT)
    return [single(math.sqrt(single(weights * g))) for g in (*near, single(1e-30))]


def _full() -> float:
    """The rank at which adjacent words, which count most, add nothing more in single precision."""
    total, after = -1.0, 0.0
    while after > total:
        total, after = after, single(1 - (1 - after) * (1 - _BY_DISTANCE[1]))
    return total


_BY_COUNT, _BY_DISTANCE = _count_table(), _pair_table()
_FULL = _full()


@lru_cache(maxsize=10_000)  # thousands of texts share a few counts
def _of_counts(counts: tuple[int, ...], items: int) -> float:
    total = 0.0
    for count in counts:
        total = single(total + _BY_COUNT[count])
    return single(total / items)


def _of_pairs(present: list[tuple[int, ...]]) -> float:
    register = array("f", [0.0])
    for index, later in enumerate(present):
        for earlier in present[:index]:
            for here, there in product(later, earlier):
                if here != there:
                    c, total = _BY_DISTANCE[min(abs(here - there), _FAR + 1)], register[0]
                    register[0] = 1 - (1 - total) * (1 - c) if total else c
            if register[0] >= _FULL:
                return register[0]
    return register[0] or NO_PAIR
