"""What can be said without labels: how far configurations agree, where they do not, and what to label first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query

Record = dict[str, Any]
Lists = Mapping[str, Sequence[Sequence[str]]]
"""Label -> ids, best first, of every query."""
DEPTH = 10
PERSISTENCE = 0.9
"""The probability that a reader goes on to the next place: 86% of the weight of RBO lies in the first ten."""
SHOWN = 10
"""Queries that are named as the first to label."""


@dataclass(frozen=True)
class Agreement:
    """Of two configurations, means over queries: RBO and Jaccard@10, each from 0 (nothing shared) to 1."""

    one: str
    other: str
    rbo: float
    jaccard: float

    @classmethod
    def of(cls, one: str, other: str, lists: Lists) -> Agreement:
        """Of two of the lists."""
        pairs = list(zip(lists[one], lists[other], strict=True))
        rbo = float(np.mean([rank_biased(a, b) for a, b in pairs]))
        return cls(one, other, rbo, float(np.mean([overlap(a, b) for a, b in pairs])))


def overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Jaccard's index of the first ten; 1 of two empty lists.

    >>> overlap(["a", "b"], ["b", "c"])
    0.3333333333333333
    """
    first, second = set(one[:DEPTH]), set(other[:DEPTH])
    return len(first & second) / len(first | second) if first | second else 1.0


def rank_biased(one: Sequence[str], other: Sequence[str]) -> float:
    """Rank-biased overlap of the first ten, extrapolated: Webber, Moffat and Zobel (TOIS 28, 2010), equation 30.

    >>> rank_biased(["a", "b"], ["a", "b"]), rank_biased(["a"], ["b"])
    (1.0, 0.0)
    """
    depth = min(DEPTH, max(len(one), len(other)))
    if depth == 0:
        return 1.0
    shared = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
    total = sum(value * PERSISTENCE**d for d, value in enumerate(shared, start=1))
    return float(round(shared[-1] * PERSISTENCE**depth + (1 - PERSISTENCE) / PERSISTENCE * total, 12))


def agreement(lists: Lists, queries: Sequence[Query]) -> Record:
    """How far each two configurations agree, the least alike first, and the queries to label first.

    `agreement` has a record a pair; `label_first` the queries on which the mean RBO over all pairs is least, each
    with the entries whose grades would part the configurations; `disagreement` is 1 less the mean RBO, None
    of one configuration.
    """
    pairs = [Agreement.of(one, other, lists) for one, other in combinations(lists, 2)]
    spread = _disagreement(lists, len(queries))
    order = np.argsort(-spread, kind="stable")[:SHOWN].tolist()
    return {
        "agreement": [vars(one) for one in sorted(pairs, key=lambda one: (one.rbo, one.one, one.other))],
        "disagreement": float(spread.mean()) if pairs else None,
        "label_first": [
            _to_label(queries[at], {label: own[at] for label, own in lists.items()}, float(spread[at]))
            for at in (order if pairs else ())
        ],
    }


def in_words(disagreement: float | None) -> str:
    """What follows from a disagreement; None is of one contender."""
    if disagreement is None:
        return "without labels nothing can be said of quality, and one contender disagrees with nothing"
    return (
        "without labels nothing can be said of quality, only that configurations disagree on "
        f"{disagreement:.0%} of the first ten (by rank-biased overlap)"
    )


def _disagreement(lists: Lists, queries: int) -> Floats:
    """float64[Q]: 1 less the mean RBO over all pairs of configurations; 0 of one configuration."""
    pairs = list(combinations(lists.values(), 2))
    if not pairs:
        return np.zeros(queries)
    return np.array([1 - np.mean([rank_biased(a[at], b[at]) for a, b in pairs]) for at in range(queries)])


def _to_label(query: Query, lists: Mapping[str, Sequence[str]], disagreement: float) -> Record:
    """A query with the entries that many but not all configurations find, those of the first places first."""
    counts: dict[str, int] = {}
    place: dict[str, int] = {}
    for own in lists.values():
        for at, entry in enumerate(own[:DEPTH]):
            counts[entry] = counts.get(entry, 0) + 1
            place[entry] = min(at, place.get(entry, at))
    split = {entry: count * (len(lists) - count) for entry, count in counts.items()}
    parting = sorted(split, key=lambda entry: (-split[entry], place[entry], entry.encode()))
    return {"id": query.id, "text": query.text, "disagreement": disagreement, "entries": parting[:DEPTH]}
