"""The choice of a setting for a set of queries: the exact optimum of every shape, then the nearest that ties.

The optimum itself is a fit to these queries. Among the settings that these queries cannot tell from it, by
one standard error of the paired difference (Breiman, Friedman, Olshen and Stone, 1984, choose trees so), the
one nearest to the current configuration is taken, in the middle of its plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.config import SearchConfig
from steelyard.expression import Duration
from steelyard.fusion import Expr, Layered, Rrf, Signal, Tiered, WeightedSum
from steelyard.table import Bools, Floats, SignalTable
from steelyard_eval.kernel import Form, forms, weights_of, with_weights
from steelyard_eval.metrics import Judgments, Measure
from steelyard_eval.tune.curve import SAME
from steelyard_eval.tune.objective import Objective
from steelyard_eval.tune.optimise import Found, movable, on_simplices, optimise
from steelyard_eval.tune.sweep import segment

TIED = 1.0
"""Standard errors within which two settings tie."""
LOOKS = 100
"""Places looked at between the current weights and the optimum."""
Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Choice:
    """What was chosen for a set of queries.

    `strategy` is the setting and `value` its mean; `optimum` the best setting found, with its mean, its
    `certificate` and a `bound` that no setting exceeds. `plateau` is where the first weight can lie without
    a change of value. `looks` counts lines and polygons, `whole` is false when the search was broken off.
    """

    strategy: Expr
    value: float
    optimum: Expr
    best: float
    certificate: str
    bound: float
    plateau: tuple[float, ...]
    looks: int
    whole: bool = True


class Chooser:
    """Chooses among the shapes of a strategy, over one recording, for any of its queries."""

    def __init__(
        self,
        table: SignalTable,
        config: SearchConfig,
        shapes: Sequence[Expr],
        judgments: Judgments,
        measure: Measure,
        units: NDArray[np.int64],
        seed: int,
    ) -> None:
        """`units` int64[Q] numbers the groups of queries that vary together."""
        self.shapes = list(shapes)
        self.forms = list(forms(table, config, shapes, judgments))
        self.measure = measure
        self.units = units
        self.seed = seed

    def choose(self, queries: Bools, progress: Progress = iter) -> Choice:
        """The setting for the queries where bool[Q] is true.

        Ctrl-C ends the search with the best of the shapes that were searched; raises KeyboardInterrupt when
        there is none yet.
        """
        found: list[Found] = []
        try:
            for at in progress(range(len(self.shapes))):
                form = self.forms[at]
                found.append(optimise(form, self.measure, form.weights, self.seed, queries))
        except KeyboardInterrupt:
            if not found:
                raise
        best = max(range(len(found)), key=lambda at: (found[at].value, -at))
        at = self._nearest_shape(found, best, queries)
        weights, plateau = self._nearest_weights(self.forms[at], found[at], queries)
        objective = Objective.of(self.forms[at], self.measure, queries)
        return Choice(
            strategy=self._written(at, weights),
            value=objective.mean(weights),
            optimum=self._written(best, found[best].weights),
            best=found[best].value,
            certificate="exact" if all(f.certificate == "exact" for f in found) else "best-found",
            bound=max(f.bound for f in found),
            plateau=plateau,
            looks=sum(f.evaluations for f in found),
            whole=len(found) == len(self.shapes),
        )

    def _nearest_shape(self, found: Sequence[Found], best: int, queries: Bools) -> int:
        """Of the shapes whose optimum ties with the best, the one nearest to the current shape."""
        top = Objective.of(self.forms[best], self.measure, queries).values(found[best].weights)
        tied = [
            at
            for at, one in enumerate(found)
            if self._ties(top, Objective.of(self.forms[at], self.measure, queries).values(one.weights), queries)
        ]
        here = _numbers(self.shapes[0])
        return min(tied, key=lambda at: (float(np.abs(_numbers(self.shapes[at]) - here).sum()), at))

    def _nearest_weights(self, form: Form, found: Found, queries: Bools) -> tuple[Floats, tuple[float, ...]]:
        """On the way from the current weights to the optimum, the first that tie with it; their plateau."""
        objective = Objective.of(form, self.measure, queries)
        branches = movable(form)
        start = on_simplices(form.weights, form, branches)
        if not branches or np.array_equal(start, found.weights):
            return found.weights, found.plateau
        top = objective.values(found.weights)
        curve = segment(objective, start, found.weights).curve()
        for t in np.linspace(0.0, 1.0, LOOKS + 1):
            weights = start + t * (found.weights - start)
            values = objective.values(weights)
            if self._ties(top, values, queries):
                break
        own = curve.around(float(t), float(values.mean()))
        middle = start + own.t * (found.weights - start)
        chosen = middle if objective.mean(middle) >= values.mean() - SAME else weights
        first = int(branches[0][0])
        ends = sorted(float(start[first] + end * (found.weights - start)[first]) for end in (own.low, own.high))
        return _short(objective, chosen), (ends[0], ends[1])

    def _ties(self, best: Floats, other: Floats, queries: Bools) -> bool:
        """Whether the mean difference lies within `TIED` standard errors, by groups of queries."""
        return float((best - other).mean()) <= TIED * standard_error(best - other, self.units[queries]) + SAME

    def _written(self, at: int, weights: Floats) -> Expr:
        """The shape under weights float64[columns]."""
        form = self.forms[at]
        whole = np.array(weights_of(self.shapes[at]), dtype=np.float64)
        moved = form.slot >= 0
        whole[form.slot[moved]] = weights[moved]
        return with_weights(self.shapes[at], whole)


def standard_error(differences: Floats, units: NDArray[np.int64]) -> float:
    """Of the mean of paired differences float64[Q], with queries of one unit int64[Q] varying together."""
    away = np.bincount(units, differences - differences.mean())
    return float(np.sqrt((away * away).sum())) / len(differences)


def _short(objective: Objective, weights: Floats) -> Floats:
    """The weights in as few decimals as keep the value to the bit, so that they can be read and typed."""
    value = objective.mean(weights)
    for digits in range(2, 8):
        rounded = np.round(weights, digits)
        if objective.mean(rounded) == value:
            return rounded
    return weights


def _numbers(expr: Expr) -> Floats:
    """The discrete parameters of a shape, each on a scale of about 1, for distances."""
    found: list[float] = []
    if isinstance(expr, WeightedSum):
        found += [float(expr.normalize == name) for name in ("none", "max", "minmax", "zscore", "rank")]
    if isinstance(expr, Rrf):
        found += [float(np.log10(expr.k + 1)), expr.bonus.amount if expr.bonus else 0.0]
    if isinstance(expr, Tiered):
        found.append(float(np.log10(expr.min_results + 1)))
    if isinstance(expr, Layered):
        found.append(expr.threshold)
    if isinstance(expr, Signal):
        found += [float(np.log10(span.seconds)) for _, span in expr.options if isinstance(span, Duration)]
    return np.concatenate([np.array(found, dtype=np.float64), *(_numbers(child) for child in expr.children())])
