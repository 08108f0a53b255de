"""What can be said without labels: how far configurations agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.corrected import benjamini_hochberg
from steelyard_eval.measures.paired import paired
from steelyard_eval.result.structs import Cell, Fact, Paired, Said, Table

Lists = Mapping[str, Sequence[Sequence[str]]]
"""Label -> ids, best first, of every query."""
DEPTH = 10
PERSISTENCE = 0.9
"""The probability that a reader goes on to the next place: 86% of the weight of RBO lies in the first ten."""


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


def agreement(lists: Lists) -> tuple[Table, float | None]:
    """How far each two configurations agree, means over queries, the least alike first.

    The second is how far they disagree: 1 less the mean RBO, None of one configuration.
    """
    found = []
    for one, other in combinations(lists, 2):
        pairs = list(zip(lists[one], lists[other], strict=True))
        rbo, jaccard = (float(np.mean([of(a, b) for a, b in pairs])) for of in (rank_biased, overlap))
        found.append((rbo, one, other, jaccard))
    rows: list[list[Cell]] = [[one, other, rbo, jaccard] for rbo, one, other, jaccard in sorted(found)]
    disagreement = 1 - float(np.mean([rbo for rbo, *_ in found])) if found else None
    return Table("agreement", ["one", "other", "rbo", "jaccard"], rows), disagreement


def told(baseline: str, disagreement: float | None) -> Said:
    """What follows from a disagreement; None is of one contender."""
    facts: dict[str, Fact] = {"baseline": baseline}
    if disagreement is None:
        return Said("disagree_alone", facts)
    return Said("disagree", {**facts, "disagreement": disagreement})


FEW = 5
"""Queries of a category below which a difference is no more than its mean."""
COLUMNS = ["category", "queries", "before", "after", "difference", "p_by_category"]


def categories(queries: Sequence[Query], sides: tuple[str, str], left: Floats, right: Floats) -> list[Table]:
    """Means and difference of two contenders (`sides`; float64[Q] each) by category, the largest category first.

    Nothing with fewer than two categories. The p-values are corrected over them for the false discovery rate.
    """
    groups: dict[str | None, list[int]] = defaultdict(list)
    for at, query in enumerate(queries):
        groups[query.category].append(at)
    if len(groups) < 2:
        return []
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] or ""))
    tests = {name: _tested(queries, rows, left, right) for name, rows in order if len(rows) >= FEW}
    corrected = benjamini_hochberg([test.p for test in tests.values()]).tolist() if tests else []
    ps = dict(zip(tests, corrected, strict=True))
    return [
        Table(
            "categories",
            COLUMNS,
            [
                [name, len(rows), float(left[rows].mean()), float(right[rows].mean()),
                 tests[name].gain if name in tests else None, ps.get(name)]
                for name, rows in order
            ],
            {"left": sides[0], "right": sides[1]},
        )
    ]  # fmt: skip


def _tested(queries: Sequence[Query], rows: list[int], left: Floats, right: Floats) -> Paired:
    units = unit_numbers([queries[at] for at in rows])
    return paired({"": right[rows]}, left[rows], units.tolist())[""]
