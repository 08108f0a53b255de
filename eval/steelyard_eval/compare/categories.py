"""The difference between two contenders in every category of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.paired import paired
from steelyard_eval.measures.spread import benjamini_hochberg
from steelyard_eval.result.structs import Paired, Table

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
