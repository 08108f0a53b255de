"""Floors with a bound: below which score nothing is shown, and what can be promised of that.

What is *lost* can be promised from ordinary labels: the share of the relevant entries in a list that the floor
drops. It grows with the floor, so Student's one-sided bound on its mean holds for the highest floor that passes
without a correction for how many were tried. How many questions without an answer are answered all the same can
be promised only from such questions, by the binomial distribution. What share of the shown is wrong cannot be
promised at all: it depends on how many questions have no answer, which no label set tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from scipy.special import bdtr, stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.grammar import number_text
from steelyard_eval.measures.judgments import lost_shares
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.measures.spread import spread
from steelyard_eval.result.structs import Fact, Said

SURE = 0.9  # how sure a floor's promise is: of ten label sets, nine give a floor that keeps it
FEWEST = 40  # queries with a relevant hit below which the bound on a mean is no bound: losses are skewed
STEPS = 201  # quantiles of the scores that are tried as floors
DIGITS = 1e5  # floors are written in so many parts of 1, so that the file is readable


@dataclass(frozen=True)
class Lists:
    """What is shown for some queries, with the scores that a floor is compared with."""

    offsets: Indices  # int64[Q+1]: query q shows the places ``offsets[q]:offsets[q+1]``
    score: Floats  # float64[R]: on the floor's scale
    relevant: Bools  # bool[R]
    unit: Indices  # int64[Q]: queries that vary together have the same number

    @property
    def query(self) -> Indices:
        """int64[R]: the query of each place."""
        return np.repeat(np.arange(len(self.unit)), np.diff(self.offsets))

    @property
    def best(self) -> Floats:
        """float64[Q]: the best score of each list; -inf for an empty one."""
        return _highest(self.score, self.query, len(self.unit))

    def answered(self, floor: float) -> int:
        """How many queries show anything; none of those whose lists are empty, whatever the floor."""
        return int(((self.best >= floor) & (np.diff(self.offsets) > 0)).sum())

    def found(self) -> Indices:
        """The queries that show a relevant entry."""
        return np.unique(self.query[self.relevant])

    def lost(self, floors: Floats) -> Floats:
        """float64[found, F]: the share of each list's relevant entries that each floor drops."""
        rows = np.flatnonzero(self.relevant)
        return lost_shares(self.query[rows], self.score[rows, None] < floors)


@dataclass(frozen=True)
class Bound:
    """A floor and what is promised of it."""

    floor: float | None  # -inf where none is needed for it, None where none keeps the promise
    bound: float  # what the mean loss, or the share of false answers, does not exceed, `SURE`
    queries: int  # how many labelled queries it rests on
    units: int  # how many of them vary independently


class ClaimRecord(TypedDict):
    """One promise: `lost` or `false` at most this share; what was measured, and the bound that keeps it."""

    name: str
    share: float
    measured: float
    bound: float
    queries: int
    units: int
    floor: float | None


def floor_for_lost(lists: Lists, share: float) -> Bound:
    """The highest floor that loses at most this share of the relevant entries in a list, in the mean.

    Student's one-sided bound on the mean loss over queries, one loss added as in conformal risk control; units
    vary as one (sums of squares over units). Raises ConfigError where too few lists hold a relevant entry.
    """
    queries = lists.found()
    unit = np.unique(lists.unit[queries], return_inverse=True)[1]
    units = int(unit.max(initial=-1)) + 1
    if len(queries) < FEWEST or units < 2:
        raise ConfigError(
            f"a floor needs {FEWEST} labelled queries whose list shows a relevant entry, and {len(queries)} do"
            f"{'' if units >= 2 or len(queries) < FEWEST else ', all of one group'}; judge more queries"
        )
    floors = np.unique(np.quantile(lists.score, np.linspace(0, 1, STEPS)))
    lost = lists.lost(floors)
    reach = stdtrit(units - 1, SURE) * spread(lost.T, unit).error
    bound = (lost.sum(axis=0) + 1) / (len(queries) + 1) + reach
    passed = np.flatnonzero(np.minimum.accumulate(bound <= share))
    last = passed[-1] if len(passed) else 0
    return Bound(float(floors[last]) if len(passed) else None, float(bound[last]), len(queries), units)


def floor_for_false(lists: Lists, share: float) -> Bound:
    """The lowest floor that answers at most this share of the questions without an answer, whose lists these are.

    Questions that vary together count as one, which is answered where any of them is. The floor lies just above an
    order statistic of their best scores, exact for any distribution (Learn then Test, Clopper and Pearson). Raises
    ConfigError where so few questions prove nothing, with the number that would.
    """
    unit = np.unique(lists.unit, return_inverse=True)[1]
    best = _highest(lists.best, unit, int(unit.max(initial=-1)) + 1)
    count, allowed = len(best), errors_allowed(len(best), share)
    if allowed < 0:
        needed = math.ceil(math.log(1 - SURE) / math.log(1 - share))
        apart = " that ask different things" if count < len(unit) else ""
        raise ConfigError(
            f"a floor for false={share:.0%} needs {needed} queries that nothing answers "
            f'("answerable": false), and there are {count}{apart}; mark {needed - count} more '
            "with steelyard judge"
        )
    falling = np.sort(best)[::-1]
    over = float(falling[allowed])
    floor = float(np.nextafter(over, np.inf)) if math.isfinite(over) else over
    bound = exact_interval(int((best > over).sum()), count, 2 * SURE - 1)[1]
    return Bound(floor, bound, len(lists.unit), count)


def floor_for_all(bounds: Mapping[str, Bound]) -> float | None:
    """The highest floor that keeps the promises ``lost`` and ``false``, either or both; None where none does.

    What is lost grows with the floor and false answers fall, so the floor for those has to be the lower one.
    Of the floors that do, it is one with five digits, where there is one. -inf: no floor is needed.
    """
    least = bounds["false"].floor if "false" in bounds else -math.inf
    most = bounds["lost"].floor if "lost" in bounds else math.inf
    if least is None or most is None or least > most:
        return None
    target, towards = (most, math.floor) if math.isfinite(most) else (least, math.ceil)
    short = towards(target * DIGITS) / DIGITS if math.isfinite(target) else target
    return short if least <= short <= most else target


def _highest(values: Floats, group: Indices, groups: int) -> Floats:
    """float64[groups]: the largest value of each group; -inf for an empty one."""
    best = np.full(groups, -np.inf)
    np.maximum.at(best, group, values)
    return best


def errors_allowed(count: int, share: float) -> int:
    """The most errors among so many cases that still prove a rate of at most `share`; -1 if not even none does."""
    return int((bdtr(np.arange(count + 1), count, share) <= 1 - SURE).sum()) - 1


def claim(name: str, share: float, bound: Bound, lists: Lists, floor: float | None) -> ClaimRecord:
    """One promise in numbers; what was measured is that of the floor that was chosen in the end."""
    own = -math.inf if bound.floor is None else bound.floor
    used = own if floor is None else floor
    measured = lists.lost(np.array([used])).mean() if name == "lost" else lists.answered(used) / len(lists.unit)
    return {
        "name": name,
        "share": share,
        "measured": float(measured),
        "bound": bound.bound,
        "queries": bound.queries,
        "units": bound.units,
        "floor": own if math.isfinite(own) else None,
    }


def said_of_floor(floor: float | None, claims: Sequence[ClaimRecord]) -> Said:
    """What the floor promises, or why there is none."""
    if floor is None and len(claims) > 1:
        lost, false = (record["floor"] for record in claims)
        return Said("floor_neither", {"least": false, "none": false is None, "most": lost, "any": lost is None})
    if floor is None:
        return Said("floor_none")
    facts: dict[str, Fact] = {"sure": SURE}
    if not math.isfinite(floor):
        first = claims[0]
        facts |= {"measured": first["measured"], "share": first["share"], "queries": first["queries"]}
        return Said("floor_not_needed", facts)
    for record in claims:
        facts |= {record["name"]: record["share"], f"{record['name']}_queries": record["queries"]}
    return Said("floor_kept", {**facts, "floor": number_text(floor), "both": len(claims) > 1})
