"""The tables beside the leaderboard: categories, how far lists agree, what is kept silent, and what is stale.

Queries that nothing answers have no nDCG: what can be measured of them is whether anything is shown. Words are
those of the texts in a list, which an agent's context has to hold.
"""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.finish import Floor
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard.memory.words import split
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.lists_and_latency import BeforeThreshold, Made
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.judgments import Ranked, recall_loss
from steelyard_eval.measures.paired import exact_interval, paired
from steelyard_eval.measures.spread import benjamini_hochberg
from steelyard_eval.result.structs import Cell, Estimate, Table

CURVE_FLOORS = 21
SHOWN = "shown floor answered silenced words saved lost false_answers none false_share".split()  # noqa: SIM905 -- short
FLOORS = ["floor_of", "floor", "floor_lost", "answered_share", "words_left"]
STALE = ["outdated", "stale", "of", "share", "fewer", "more", "most_often"]
LAYERS = ["layered", "queries", "at_threshold", "lower_step", "all_details", "no_result", "l0", "l1", "l2"]


def layers_of(made: Sequence[Made]) -> list[Table]:
    """How far each layered search went, by its label."""
    rows: list[list[Cell]] = [
        [one.label, went["queries"], went["at_threshold"], sum(went["relaxed"].values()), went["full_search"],
         went["without_result"], *(went["hit_rates"][layer] for layer in ("l0", "l1", "l2"))]
        for one in made
        if (went := one.progress)
    ]  # fmt: skip
    return [Table("layers", LAYERS, rows)] if rows else []


def silences(dataset: Dataset, made: Sequence[Made]) -> list[Table]:
    """A row for each contender, and of those with a floor what others would do; none without floors or silence."""
    if not any(one.unanswered or one.unfloored for one in made):
        return []
    words = {entry.id: len(entry.text.split()) for entry in dataset.entries}
    rows: list[list[Cell]] = []
    points: list[list[Cell]] = []
    for one in made:
        curve = _curve(one.unfloored, words, dataset) if one.unfloored else []
        points += [[one.label, *point] for point in curve]
        rows.append(_silence_row(one, words, curve))
    return [Table("silence", SHOWN, rows), *([Table("floors", FLOORS, points)] if points else [])]


def _silence_row(one: Made, words: Mapping[str, int], curve: Sequence[Sequence[float]]) -> list[Cell]:
    config = one.contender.config if isinstance(one.contender, Contender) else None
    floors = [str(stage) for stage in config.finish if isinstance(stage, Floor)] if config else []
    asked, total = len(one.ranked.queries), int(_words_by_place(one.ranked, words).sum())
    cells: list[Cell] = [
        one.label, ", ".join(floors) or None, asked - one.empty, one.empty, total / max(asked, 1)
    ]  # fmt: skip
    if one.unfloored:
        own = next((point for point in curve if point[0] == one.unfloored.least), [0.0, 0.0, 1.0, 1.0])
        cells += [1 - own[3], own[1]]
    else:
        cells += [None, None]
    if one.unanswered is None:
        return [*cells, None, None, None]
    asked, answered = len(one.unanswered.queries), int(np.count_nonzero(np.diff(one.unanswered.offsets)))
    return [*cells, answered, asked, Estimate(answered / max(asked, 1), *exact_interval(answered, asked))]


def _words_by_place(lists: Ranked, words: Mapping[str, int]) -> Floats:
    return np.array([words.get(lists.entries[entry], 0) for entry in lists.entry.tolist()], dtype=np.float64)


def _curve(whole: BeforeThreshold, words: Mapping[str, int], dataset: Dataset) -> list[list[float]]:
    """A row a floor: what it loses, and the shares of questions (coverage) and of words that it leaves.

    What it loses is the mean over lists of the share of their relevant entries.
    """
    lists, sizes = whole.ranked, _words_by_place(whole.ranked, words)
    if not len(sizes):
        return []
    floors = np.unique([whole.least, *np.quantile(whole.score, np.linspace(0, 1, CURVE_FLOORS))])
    relevant, total = lists.relevant(dataset.qrels), float(sizes.sum())
    lost = recall_loss(lists.query[relevant], whole.score[relevant, None] < floors)
    stays = whole.score[:, None] >= floors
    return [
        [
            floor,
            float(lost[:, at].mean()) if len(lost) else 0.0,
            len(np.unique(lists.query[stays[:, at]])) / len(lists.queries),
            float(sizes[stays[:, at]].sum() / total) if total else 0.0,
        ]
        for at, floor in enumerate(floors.tolist())
    ]


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
    stale: dict[str, dict[str, list[str]]] = {}
    for one in made:
        lists = zip(one.ranked.queries, one.ranked.lists(), strict=True)
        found = {query: facts.stale(ids[:cutoff], clocks[query]) for query, ids in lists}
        stale[one.label] = {query: ids for query, ids in found.items() if ids}
    rows: list[list[Cell]] = []
    for label, own in stale.items():
        ids, before = sorted(id_ for ids in own.values() for id_ in ids), stale[baseline]
        share = Estimate(len(own) / max(len(queries), 1), *exact_interval(len(own), len(queries)))
        moved = [len(before.keys() - own), len(own.keys() - before)] if label != baseline else [None, None]
        rows.append([label, len(own), len(queries), share, *moved, max(ids, key=ids.count, default=None)])
    return [Table("stale", STALE, rows)]


DEPTH = 10
PERSISTENCE = 0.9
"""The probability that a reader goes on to the next place: 86% of the weight of RBO lies in the first ten."""


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


def agreement(lists: Mapping[str, Sequence[Sequence[str]]]) -> tuple[Table, float | None]:
    """How far each two configurations agree, means over queries, the least alike first.

    `lists` are the ids of every query, best first, by label. The second is how far they disagree: 1 less the mean
    RBO, None of one configuration.
    """
    found = []
    for one, other in combinations(lists, 2):
        pairs = zip(lists[one], lists[other], strict=True)
        found.append((float(np.mean([rank_biased(a, b) for a, b in pairs])), one, other))
    rows: list[list[Cell]] = [[one, other, rbo] for rbo, one, other in sorted(found)]
    disagreement = 1 - float(np.mean([rbo for rbo, *_ in found])) if found else None
    return Table("agreement", ["one", "other", "rbo"], rows), disagreement


MIN_TESTED_CATEGORY = 5
COLUMNS = ["category", "queries", "before", "after", "difference", "p_by_category"]


def script_of(text: str) -> str:
    """The script of most words of a text, as Unicode names its letters; empty without letters.

    >>> script_of("密钥轮换 for Redis"), script_of("Größe")
    ('cjk', 'latin')
    """
    if text.isascii():
        return "latin" if any(map(str.isalpha, text)) else ""
    names = (unicodedata.name(word[0], "").partition(" ")[0].lower() for word in split(text) if word[0].isalpha())
    counts = Counter(names)
    return max(counts, key=counts.__getitem__, default="")


def scripts(dataset: Dataset, queries: Sequence[Query]) -> list[str | None]:
    """Of each query its script and that of its first relevant entry, where they differ: ``latin, entry cjk``."""
    entries = {entry.id: entry for entry in dataset.entries}
    told: list[str | None] = []
    for query in queries:
        own, grades = script_of(query.text), dataset.qrels.get(query.id, {})
        best = max(grades, key=lambda id_: grades[id_], default="")
        other = script_of(content(entries[best])) if best in entries and grades[best] else own
        told.append((own or "no letters") + (f", entry {other}" if other not in ("", own) else ""))
    return told


def categories(
    dataset: Dataset, queries: Sequence[Query], sides: tuple[str, str], left: Floats, right: Floats
) -> list[Table]:
    """Means and difference of two contenders (`sides`; float64[Q] each) by category, the largest category first.

    By script where no query has a category. Nothing with fewer than two of them. The p-values are corrected over
    them for the false discovery rate.
    """
    groups: dict[str | None, list[int]] = defaultdict(list)
    stated = any(query.category for query in queries)
    for at, name in enumerate([query.category for query in queries] if stated else scripts(dataset, queries)):
        groups[name].append(at)
    if len(groups) < 2:
        return []
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] or ""))
    tests = {}
    for name, own in order:
        if len(own) >= MIN_TESTED_CATEGORY:
            units = unit_numbers([queries[at] for at in own]).tolist()
            tests[name] = paired({"": right[own]}, left[own], units)[""]
    ps = dict(zip(tests, benjamini_hochberg([test.p for test in tests.values()]).tolist(), strict=True))
    rows: list[list[Cell]] = [
        [name, len(own), float(left[own].mean()), float(right[own].mean()),
         tests[name].gain if name in tests else None, ps.get(name)]
        for name, own in order
    ]  # fmt: skip
    return [Table("categories", COLUMNS, rows, {"left": sides[0], "right": sides[1]})]


@dataclass(frozen=True)
class Succession:
    """Which entries took the place of which, and from when on."""

    # replaced entry -> all that took its place, directly or one after the other
    later: Mapping[str, frozenset[str]]
    born: Mapping[str, float]  # entry -> when it was created, where that is known; seconds UTC, as `ends`
    ends: Mapping[str, float]  # entry -> when it ceases to be valid, where it does

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Succession":
        """Read the facts of a corpus."""
        known = {entry.id: entry for entry in entries}
        direct: dict[str, set[str]] = {}
        for entry in known.values():
            if entry.superseded_by in known:
                direct.setdefault(entry.id, set()).add(entry.superseded_by)
            for relation in entry.relations:
                if (
                    relation.type == "supersedes"
                    and relation.status in ("", "accepted")
                    and relation.target in known
                ):
                    direct.setdefault(relation.target, set()).add(entry.id)
        born = {id_: entry.created_at for id_, entry in known.items() if entry.created_at is not None}
        ends = {id_: entry.valid_until for id_, entry in known.items() if entry.valid_until is not None}
        return cls({id_: _all_later(id_, direct) for id_ in direct}, born, ends)

    def __bool__(self) -> bool:
        return bool(self.later or self.ends)

    def stale(self, ids: Sequence[str], clock: float) -> list[str]:
        """The stale entries of a list, best first: gone by the clock, and no successor stands above them.

        >>> facts = Succession({"old": frozenset({"new"})}, {"new": 5.0}, {"rule": 7.0})
        >>> facts.stale(["old", "new", "rule"], 9.0), facts.stale(["new", "old"], 9.0), facts.stale(["old"], 4.0)
        (['old', 'rule'], [], [])
        """
        above: set[str] = set()
        gone = []
        for id_ in ids:
            current = {new for new in self.later.get(id_, ()) if self.born.get(new, clock) <= clock}
            if (current or self.ends.get(id_, math.inf) <= clock) and above.isdisjoint(current):
                gone.append(id_)
            above.add(id_)
        return gone


def _all_later(id_: str, direct: Mapping[str, set[str]]) -> frozenset[str]:
    later: set[str] = set()
    waiting = [id_]
    while waiting:
        new = direct.get(waiting.pop(), set()) - later
        later |= new
        waiting += new
    return frozenset(later - {id_})
