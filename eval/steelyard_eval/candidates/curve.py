"""The mean of a measure along one weight, exactly: a piecewise constant function, and its plateaus.

For fixed columns a score is linear in the weights, so along a line every row's score is a straight line, known by
its values at both ends, and ranks change only where two rows cross. Values apply to open intervals; those no wider
than 1e-9 count as part of the crossing that they are at. Both end points have their own values, ties by row index.
Exact means up to the rounding of two scores in float64. `FreeWeights` is this curve of a configuration over one
recording, along its first weight.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.grid import totals
from steelyard_eval.candidates.linear_form import Form, forms, movable, on_simplices, pairs_of
from steelyard_eval.measures.metrics import ALL, ANY, FIRST, GAIN, PRECISIONS, Judgments, Measure
from steelyard_eval.result.structs import Cell, Fact, Table

NARROWEST = 1e-9  # intervals no wider than this are treated as part of the crossing that they are at
SAME = 1e-12  # values that differ by no more than this count as equal


@dataclass(frozen=True)
class Plateau:
    """Adjacent intervals of one value: ``low`` to ``high``, and the point chosen among them.

    `low` equals `high` where only an end point of the line reaches the value.
    """

    low: float
    high: float
    t: float
    value: float

    def distance(self, t: float) -> float:
        """Return the distance of t from the plateau; 0 on it."""
        return max(self.low - t, t - self.high, 0.0)


@dataclass(frozen=True)
class Curve:
    """A piecewise constant function of t."""

    edges: Floats  # float64[E+2]: ascending: the low end, the places where the value changes, the high end
    values: Floats  # float64[E+1]: the values on the open intervals between neighbouring edges
    ends: tuple[float, float]  # the values at the two end points themselves

    @property
    def wide(self) -> Bools:
        """The intervals that are wide enough to count; bool[E+1]."""
        return np.diff(self.edges) > NARROWEST

    @property
    def best(self) -> float:
        """The highest value of an end point or of an interval that is wide enough."""
        return float(max(*self.ends, self.values[self.wide].max(initial=-np.inf)))

    def plateaus(self, value: float | None = None) -> list[Plateau]:
        """List the maximal runs of adjacent pieces of a value, by default the best, from low to high.

        The t of each is its middle, or the middle of its widest interval when a change is at its middle.
        """
        wide, (low, *_, high) = self.wide, self.edges
        lows = np.concatenate(([low], self.edges[:-1][wide], [high]))
        highs = np.concatenate(([low], self.edges[1:][wide], [high]))
        values = np.concatenate(([self.ends[0]], self.values[wide], [self.ends[1]]))
        good = values >= self.best - SAME if value is None else np.abs(values - value) <= SAME
        begins = np.flatnonzero(good & ~np.concatenate(([False], good[:-1])))
        ends = np.flatnonzero(good & ~np.concatenate((good[1:], [False]))) + 1
        return [_plateau(lows[a:b], highs[a:b], values[a:b]) for a, b in zip(begins, ends, strict=True)]

    def around(self, t: float, value: float) -> Plateau:
        """Return the maximal run of pieces of a value that contains t or is nearest to it; t alone without any."""
        runs = self.plateaus(value)
        return min(runs, key=lambda p: (p.distance(t), p.low - p.high), default=Plateau(t, t, t, value))

    def choose(self, near: float | None = None) -> Plateau:
        """Choose the plateau nearest to a t, then the widest, then the first."""
        return min(self.plateaus(), key=lambda p: (0.0 if near is None else p.distance(near), p.low - p.high))


def _plateau(lows: Floats, highs: Floats, values: Floats) -> Plateau:
    low, high = float(lows[0]), float(highs[-1])
    t = (low + high) / 2
    inside = (lows < t - NARROWEST / 4) & (t + NARROWEST / 4 < highs)
    i = int(np.argmax(inside)) if inside.any() else int(np.argmax(highs - lows))
    return Plateau(low, high, t if inside.any() else float(lows[i] + highs[i]) / 2, float(values[i]))


@dataclass(frozen=True)
class Objective:
    """The mean of a measure over the Q queries of a form, as a function of the ranks of relevant rows."""

    form: Form  # its rows
    kind: int  # how the measure is computed, as `Measure.kind` has it
    # float64[D+2]: the value of the ranks 1 to D; 0 at index 0, and at D+1 for every rank beyond the cut D
    by_rank: Floats
    gain: Floats  # float64[Q, R]: the factor of each relevant row of a query, 0 beyond the last of them

    @classmethod
    def of(cls, form: Form, measure: Measure) -> "Objective":
        """Make the objective of a form; ConfigError for Judged@k and tokens, no functions of relevant ranks."""
        if measure.tokens is not None:
            raise ConfigError(f"{measure} has no exact curve; name a metric of places")
        kind, relevant = measure.kind, np.diff(form.relevant_offsets)
        longest = int(np.diff(form.offsets).max(initial=0))
        depth = min(cut for cut in (longest, measure.cutoff, form.limit) if cut is not None)
        ranks, by_rank = np.arange(1, depth + 1, dtype=np.float64), np.zeros(depth + 2)
        by_rank[1:-1] = 1 / np.log2(ranks + 1) if kind == GAIN else 1 / ranks if kind in (FIRST, PRECISIONS) else 1
        gain = np.zeros((form.queries, int(relevant.max(initial=0))))
        divisor = np.repeat(measure.divisor(form.judgments), relevant)
        gain[form.relevant_places] = (form.grade if kind == GAIN else 1.0) / divisor
        return cls(form, kind, by_rank, gain)

    def values(self, weights: Floats) -> Floats:
        """Compute the measure of each query under weights float64[S], ties by row index; float64[Q]."""
        form, scores = self.form, self.form.scores(weights)
        return self.values_of(
            rank_steps(scores, scores, form.offsets, form.relevant, form.relevant_offsets, 0)[3][1]
        )

    def values_of(self, ranks: Indices) -> Floats:
        """Compute the measure of each query when the relevant rows have these ranks (int64[R]); float64[Q]."""
        return self.value_of(self.by_query(ranks), self.gain)

    def by_query(self, ranks: Indices) -> Indices:
        """int64[Q, R]: the ranks of the relevant rows of each query, then ranks that are beyond the cut."""
        table = np.full(self.gain.shape, len(self.by_rank) - 1, dtype=np.int64)
        table[self.form.relevant_places] = ranks
        return table

    def value_of(self, ranks: Indices, gain: Floats) -> Floats:
        """float64[...]: the value of the relevant rows of one query at these ranks, int64[..., R]."""
        worth = self.by_rank[np.minimum(ranks, len(self.by_rank) - 1)]
        if self.kind in (FIRST, ANY):
            return np.asarray(worth.max(axis=-1, initial=0.0), dtype=np.float64)
        if self.kind == PRECISIONS:  # at each of them, as many are relevant as are no further down
            worth = worth * (ranks.argsort(axis=-1).argsort(axis=-1) + 1)
        value = np.asarray((gain * worth).sum(axis=-1), dtype=np.float64)
        if self.kind == ALL:  # a rounded sum of equal parts
            return np.asarray(value > 1 - 0.5 * gain.max(axis=-1, initial=0.0), dtype=np.float64)
        return value

    def mean(self, weights: Floats) -> float:
        """Compute the mean of `values`."""
        return float(self.values(weights).mean())


def rank_steps(
    low: Floats, high: Floats, offsets: Indices, relevant: Indices, relevant_offsets: Indices, deepest: int
) -> tuple[Floats, Indices, NDArray[np.int64], Indices]:
    """Find every change of the rank of a relevant row that may come down to `deepest`, along a line.

    `low` and `high` float64[N] are the scores at both ends. Two rows cross inside exactly where their order at one
    end is strictly the opposite of that at the other, at

        u = (low_j - low_i) / ((low_j - low_i) - (high_j - high_i))        of the way, strictly between 0 and 1.

    Rows that tie at one end are ordered, just inside, by the other end; of rows that tie at both the smaller index
    is ahead.
    Returns where, of, step : float64[E], int64[E], int64[E]: The place u of each change, whose rank it is (an
    index into `relevant`), and the change, -1 or 1.; ranks : int64[3, R]: The ranks just inside the low end, at
    the low end and at the high end.
    """
    of, row, begins = pairs_of(offsets, relevant, relevant_offsets)
    before, after = low[row] - low[relevant][of], high[row] - high[relevant][of]
    falls, rises, first = (before > 0) & (after < 0), (before < 0) & (after > 0), row < relevant[of]
    always = (before >= 0) & (after >= 0) & (first | (before > 0) | (after > 0))
    at_low, at_high = (before > 0) | (first & (before == 0)), (after > 0) | (first & (after == 0))
    if not len(of):  # reduceat would fail
        return np.zeros(0), of, of, np.ones((3, 0), dtype=np.int64)
    ahead, *ranks = (
        np.add.reduceat(found, begins, dtype=np.int64) for found in (always, always | falls, at_low, at_high)
    )
    kept = np.flatnonzero((falls | rises) & (ahead < deepest)[of])
    where = before[kept] / (before[kept] - after[kept])
    return where, of[kept], np.where(falls[kept], -1, 1), 1 + np.stack(ranks)


def sweep(objective: Objective, start: Floats, direction: Floats, low: float = 0.0, high: float = 1.0) -> Curve:
    """The mean along ``weights(t) = start + t * direction`` for t from `low` to `high`; float64[S] each."""
    form = objective.form
    scores = form.scores(start + low * direction), form.scores(start + high * direction)
    index = form.offsets, form.relevant, form.relevant_offsets
    where, of, step, ranks = rank_steps(*scores, *index, len(objective.by_rank) - 2)
    query, column = (places[of] for places in form.relevant_places)
    along = np.argsort(where, kind="stable")  # changes at one place stay in the order of the rows
    order = along[np.argsort(query[along], kind="stable")]
    bounds, table = np.searchsorted(query[order], np.arange(form.queries + 1)), objective.by_query(ranks[0])
    change = np.zeros(len(order))
    for q in np.unique(query).tolist():
        own = order[bounds[q] : bounds[q + 1]]
        steps = np.zeros((len(own) + 1, table.shape[1]), dtype=np.int64)
        steps[np.arange(1, len(own) + 1), column[own]] = step[own]
        change[own] = np.diff(objective.value_of(table[q] + np.cumsum(steps, axis=0), objective.gain[q]))
    changing = along[change[along] != 0]
    at_start, *ends = (objective.values_of(own) for own in ranks)
    return Curve(
        edges=np.concatenate(([low], low + (high - low) * where[changing], [high])),
        values=(at_start.sum() + np.concatenate(([0.0], np.cumsum(change[changing])))) / form.queries,
        ends=(float(ends[0].mean()), float(ends[1].mean())),
    )


POINTS = 400
COLUMNS = ["weight", "low", "high", "value"]


@dataclass(frozen=True)
class FreeWeights:
    """Weights that move are searched as shares of their sum, which stays what it is.

    `form` holds columns times that sum (`total` float64[S]), so that scores keep their scale beside weights that
    do not move, and beside fixed scores. `branches` are the columns of each sum that moves, `start` their shares.
    """

    form: Form
    measure: Measure
    branches: list[Indices]
    total: Floats
    start: Floats

    @classmethod
    def of(cls, table: SignalTable, config: SearchConfig, judgments: Judgments, measure: Measure) -> "FreeWeights":
        """Of one configuration over a recording."""
        (form,) = forms(table, config, [config.strategy], judgments)
        branches = [] if measure.tokens else movable(form)  # which has no curve
        total = totals(form, branches)
        form = replace(form, columns=form.columns * total[:, None], weights=form.weights / total)
        return cls(form, measure, branches, total, on_simplices(form.weights, form, branches))

    @cached_property
    def objective(self) -> Objective:
        """The mean of the measure."""
        return Objective.of(self.form, self.measure)

    @cached_property
    def curve(self) -> Curve:
        """The mean along the first weight that moves, as its share of the sum, the others in proportion."""
        branch = self.branches[0]
        rest, total = branch[1:], self.start[branch[1:]].sum()
        begin, end = self.start.copy(), self.start.copy()
        begin[branch], end[branch] = 0.0, branch == branch[0]
        begin[rest] = self.start[rest] / total if total > 0 else 1.0 / len(rest)
        return sweep(self.objective, begin, end - begin)

    @property
    def scale(self) -> float:
        """The sum of the weights beside the first one that moves, and it."""
        return float(self.total[self.branches[0][0]])

    @property
    def share(self) -> float:
        """The first weight that moves, as its share of the sum."""
        return float(self.start[self.branches[0][0]])

    def plateau(self) -> tuple[float, ...]:
        """Between which values, as written, the first weight that moves can lie without a change of the mean.

        Empty when nothing moves.
        """
        if not self.branches:
            return ()
        plateau = self.curve.around(self.share, self.objective.mean(self.start))
        return plateau.low * self.scale, plateau.high * self.scale

    def table(self, current: "FreeWeights | None" = None) -> list[Table]:
        """The `POINTS` widest steps of the curve; nothing where no weight moves.

        `current` is what is used today: its share is named where it has the same columns.
        """
        if not self.branches:
            return []
        names = self._names(self.branches[0])
        alike = [own for own in current.branches if current._names(own) == names] if current else []
        facts: dict[str, Fact] = {"signal": names[0], "others": names[1:], "chosen": self.scale * self.share}
        facts["current"] = self.scale * float(current.start[alike[0][0]]) if current and alike else None
        facts |= dict(zip(("plateau_low", "plateau_high"), self.plateau(), strict=True))
        return [Table("curve", COLUMNS, steps_of(self.curve, self.scale), facts)]

    def _names(self, branch: Indices) -> list[str]:
        return [self.form.labels[column] for column in branch]


def steps_of(curve: Curve, total: float) -> list[list[Cell]]:
    """The widest steps of a curve: the weight at the middle and both ends, as parts of a total, and the value."""
    wide = np.flatnonzero(curve.wide)
    kept = np.sort(wide[np.argsort(-np.diff(curve.edges)[wide], kind="stable")[:POINTS]])
    lows, highs = total * curve.edges[kept], total * curve.edges[kept + 1]
    return [
        list(step) for step in np.stack([(lows + highs) / 2, lows, highs, curve.values[kept]], axis=1).tolist()
    ]
