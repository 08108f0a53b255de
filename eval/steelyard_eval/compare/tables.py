"""The tables beside the leaderboard: categories, how far lists agree, what is kept silent, and what is stale.

Queries that nothing answers have no nDCG: what can be measured of them is whether anything is shown. Words are
those of the texts in a list, which an agent's context has to hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.finish import Floor
from steelyard.memory.query import Query
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.lists import Made, Unfloored
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.judgments import lost_shares
from steelyard_eval.measures.paired import exact_interval, paired
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.measures.spread import benjamini_hochberg
from steelyard_eval.measures.stale import Succession
from steelyard_eval.result.structs import Cell, Estimate, Fact, Paired, Said, Table

CURVE = 21
"""Floors of the curve of what is lost against what is answered."""
SHOWN = [
    "shown",
    "floor",
    "answered",
    "silenced",
    "words",
    "saved",
    "lost",
    "false_answers",
    "none",
    "false_share",
]
FLOORS = ["floor_of", "floor", "floor_lost", "answered_share", "words_left"]


def silences(dataset: Dataset, made: Sequence[Made]) -> list[Table]:
    """A row for each contender, and of those with a floor what others would do; none without floors or silence."""
    if not any(one.silent or _floors(one) for one in made):
        return []
    words = {entry.id: len(entry.text.split()) for entry in dataset.entries}
    curves = {one.label: _curve(one.unfloored, words, dataset) for one in made if one.unfloored}
    rows = [_row(one, words, curves.get(one.label)) for one in made]
    points: list[list[Cell]] = [[label, *point] for label, curve in curves.items() for point in curve]
    return [Table("silence", SHOWN, rows), *([Table("floors", FLOORS, points)] if points else [])]


def _floors(one: Made) -> list[str]:
    if not isinstance(one.contender, Contender):
        return []
    return [str(stage) for stage in one.contender.config.finish if isinstance(stage, Floor)]


def _row(one: Made, words: dict[str, int], curve: list[list[float]] | None) -> list[Cell]:
    """What it shows, what its floor saves and loses, and what it shows where nothing fits."""
    asked, answered, shown = _shown(one.ranked, words)
    saved = lost = None
    if one.unfloored and curve is not None:
        own = next((point for point in curve if point[0] == one.unfloored.least), [0.0, 0.0, 1.0, 1.0])
        saved, lost = 1 - own[3], own[1]
    cells: list[Cell] = [
        one.label,
        ", ".join(_floors(one)) or None,
        answered,
        asked - answered,
        shown,
        saved,
        lost,
    ]
    if one.silent is None:
        return [*cells, None, None, None]
    asked, answered, _ = _shown(one.silent, words)
    return [*cells, answered, asked, Estimate(answered / max(asked, 1), *exact_interval(answered, asked))]


def _curve(whole: Unfloored, words: dict[str, int], dataset: Dataset) -> list[list[float]]:
    """A row a floor: what it loses in the mean of the relevant entries of a list, and the shares of questions
    (coverage) and of words that it leaves.
    """
    lists = whole.ranked
    sizes = np.array([words.get(lists.entries[entry], 0) for entry in lists.entry.tolist()], dtype=np.float64)
    if not len(sizes):
        return []
    floors = np.unique([whole.least, *np.quantile(whole.score, np.linspace(0, 1, CURVE))])
    return _points(whole, lists.relevant(dataset.qrels), sizes, floors)


def _points(whole: Unfloored, relevant: Bools, sizes: Floats, floors: Floats) -> list[list[float]]:
    query, count, total = whole.ranked.query, len(whole.ranked.queries), float(sizes.sum())
    lost = lost_shares(query[relevant], whole.score[relevant, None] < floors)
    stays = whole.score[:, None] >= floors
    return [
        [
            floor,
            float(lost[:, at].mean()) if len(lost) else 0.0,
            len(np.unique(query[stays[:, at]])) / count,
            float(sizes[stays[:, at]].sum() / total) if total else 0.0,
        ]
        for at, floor in enumerate(floors.tolist())
    ]


def _shown(lists: Ranked, words: dict[str, int]) -> tuple[int, int, float]:
    """How many queries there are, how many show anything, and the mean number of words that a query shows."""
    asked = len(lists.queries)
    total = sum(words.get(lists.entries[entry], 0) for entry in lists.entry.tolist())
    return asked, int(np.count_nonzero(np.diff(lists.offsets))), total / max(asked, 1)


STALE = ["outdated", "stale", "of", "share", "fewer", "more", "most_often"]


def stale_lists(
    dataset: Dataset, queries: Sequence[Query], made: Sequence[Made], cutoff: int, baseline: str
) -> list[Table]:
    """A row for each contender; none where no entry of the corpus was replaced or expires.

    `more` and `fewer` count queries whose list is stale here and not in the baseline, and the other way round.
    """
    facts = Succession.of(dataset.entries)
    if not facts:
        return []
    clocks = {query.id: dataset.clock(query) for query in queries}
    lists = {one.label: _stale(facts, one, clocks, cutoff) for one in made}
    rows = [_stale_row(one, lists[one.label], None if one.label == baseline else lists[baseline]) for one in made]
    return [Table("stale", STALE, rows)]


def _stale(facts: Succession, one: Made, clocks: dict[str, float], cutoff: int) -> dict[str, list[str]]:
    lists = zip(one.ranked.queries, one.ranked.lists(), strict=True)
    stale = {query: facts.stale(ids[:cutoff], clocks[query]) for query, ids in lists}
    return {query: ids for query, ids in stale.items() if ids}


def _stale_row(one: Made, own: dict[str, list[str]], before: dict[str, list[str]] | None) -> list[Cell]:
    asked = len(one.ranked.queries)
    shown = sorted(id_ for ids in own.values() for id_ in ids)
    share = Estimate(len(own) / max(asked, 1), *exact_interval(len(own), asked))
    fewer, more = (None, None) if before is None else (len(before.keys() - own), len(own.keys() - before))
    return [one.label, len(own), asked, share, fewer, more, max(shown, key=shown.count, default=None)]


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
