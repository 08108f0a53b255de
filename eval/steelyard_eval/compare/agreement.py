"""What can be said without labels: how far configurations agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np

from steelyard_eval.common.documents.results import AgreementPart, AgreementRecord

Lists = Mapping[str, Sequence[Sequence[str]]]
"""Label -> ids, best first, of every query."""
DEPTH = 10
PERSISTENCE = 0.9
"""The probability that a reader goes on to the next place: 86% of the weight of RBO lies in the first ten."""


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


def agreement(lists: Lists) -> AgreementPart:
    """How far each two configurations agree, the least alike first.

    `agreement` has a record a pair; `disagreement` is 1 less the mean RBO, None of one configuration.
    """
    pairs = [Agreement.of(one, other, lists) for one, other in combinations(lists, 2)]
    return {
        "agreement": [
            cast(AgreementRecord, vars(pair))
            for pair in sorted(pairs, key=lambda pair: (pair.rbo, pair.one, pair.other))
        ],
        "disagreement": 1 - float(np.mean([pair.rbo for pair in pairs])) if pairs else None,
    }


def in_words(disagreement: float | None) -> str:
    """What follows from a disagreement; None is of one contender."""
    if disagreement is None:
        return "without labels nothing can be said of quality, and one contender disagrees with nothing"
    return (
        "without labels nothing can be said of quality, only that configurations disagree on "
        f"{disagreement:.0%} of the first ten (by rank-biased overlap)"
    )
