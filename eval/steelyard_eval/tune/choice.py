"""The choice of a setting for a set of queries: the exact optimum of every setting, then the nearest that ties.

The optimum itself is a fit to these queries. Among the settings that these queries cannot tell from it, by
one standard error of the paired difference (Breiman, Friedman, Olshen and Stone, 1984, choose trees so), the
one nearest to the current configuration is taken, in the middle of its plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.config import SearchConfig
from steelyard.expression import Duration
from steelyard.fusion import Expr, Layered, Rrf, Signal, Tiered, WeightedSum
from steelyard.table import Bools, Floats, SignalTable
from steelyard_eval.metrics import Judgments, Measure
from steelyard_eval.tune.candidate import Candidate, candidates
from steelyard_eval.tune.curve import SAME
from steelyard_eval.tune.objective import Indices
from steelyard_eval.tune.optimise import Found
from steelyard_eval.tune.sweep import segment

TIED = 1.0
"""Standard errors within which two settings tie."""
LOOKS = 100
"""Places looked at between the current weights and the optimum."""
Progress = Callable[[Sequence[Candidate], Callable[[], str]], Iterable[Candidate]]
"""Shows how far a sequence has come, with a word on how it goes."""


def in_silence(items: Sequence[Candidate], status: Callable[[], str]) -> Iterable[Candidate]:
    """No progress is shown."""
    return items


@dataclass(frozen=True)
class Choice:
    """What was chosen for a set of queries.

    `config` is the setting and `value` its mean; `optimum` the best setting found, with its mean, its
    `certificate` and a `bound` that no setting exceeds. `plateau` is where the first weight can lie without
    a change of value. `looks` counts lines and polygons, `whole` is false when the search was broken off.
    """

    config: SearchConfig
    value: float
    optimum: SearchConfig
    best: float
    certificate: str
    bound: float
    plateau: tuple[float, ...]
    looks: int
    whole: bool = True


@dataclass(frozen=True)
class _Tried:
    """A candidate with its best weights, and the measure under them, float64[queries that count]."""

    candidate: Candidate
    found: Found
    values: Floats


class Chooser:
    """Chooses among settings over one recording, for any of its queries; the first setting is the current one."""

    def __init__(
        self,
        table: SignalTable,
        settings: Sequence[SearchConfig],
        judgments: Judgments,
        measure: Measure,
        units: Indices,
        seed: int,
    ) -> None:
        """`units` int64[Q] numbers the groups of queries that vary together."""
        self.candidates = list(candidates(table, settings, judgments, measure))
        self.units = units
        self.seed = seed

    def choose(self, queries: Bools, progress: Progress = in_silence) -> Choice:
        """The setting for the queries where bool[Q] is true.

        Ctrl-C ends the search with the best of the settings that were searched; raises KeyboardInterrupt when
        there is none yet.
        """
        tried: list[_Tried] = []
        best = -np.inf
        try:
            for candidate in progress(self.candidates, lambda: f"best {best:.4f}"):
                found = candidate.search(queries, self.seed)
                tried.append(_Tried(candidate, found, candidate.values(found.weights)[queries]))
                best = max(best, found.value)
        except KeyboardInterrupt:
            if not tried:
                raise
        top = max(tried, key=lambda one: one.found.value)
        near = self._nearest(tried, top, queries)
        weights = self._settled(near, queries)
        return Choice(
            config=near.candidate.written(weights),
            value=near.candidate.mean(weights, queries),
            optimum=top.candidate.written(top.found.weights),
            best=top.found.value,
            certificate="exact" if all(one.found.certificate == "exact" for one in tried) else "best-found",
            bound=max(one.found.bound for one in tried),
            plateau=near.candidate.plateau(weights, queries),
            looks=sum(one.found.evaluations for one in tried),
            whole=len(tried) == len(self.candidates),
        )

    def _nearest(self, tried: Sequence[_Tried], top: _Tried, queries: Bools) -> _Tried:
        """Of the settings whose optimum ties with the best, the one nearest to the current setting."""
        here = _numbers(self.candidates[0].config)
        tied = [one for one in tried if self._ties(top.values, one.values, queries)]
        return min(tied, key=lambda one: float(np.abs(_numbers(one.candidate.config) - here).sum()))

    def _settled(self, near: _Tried, queries: Bools) -> Floats:
        """On the way from the current weights to the optimum, the first that tie with it, amid their plateau."""
        candidate, found = near.candidate, near.found
        way = segment(candidate.objective, candidate.start, found.weights)
        places = np.linspace(0.0, 1.0, LOOKS + 1).tolist()
        t = next((t for t in places if self._ties(near.values, way.values(t)[queries], queries)), 1.0)
        if t == 0.0:
            return candidate.start
        plateau = way.curve(queries).around(t, float(way.values(t)[queries].mean()))
        weights, middle = (candidate.start + at * (found.weights - candidate.start) for at in (t, plateau.t))
        better = candidate.mean(middle, queries) >= candidate.mean(weights, queries) - SAME
        return candidate.short(middle if better else weights, queries)

    def _ties(self, best: Floats, other: Floats, queries: Bools) -> bool:
        """Whether the mean difference lies within `TIED` standard errors, by groups of queries."""
        return float((best - other).mean()) <= TIED * standard_error(best - other, self.units[queries]) + SAME


def standard_error(differences: Floats, units: Indices) -> float:
    """Of the mean of paired differences float64[Q], with queries of one unit int64[Q] varying together."""
    away = np.bincount(units, differences - differences.mean())
    return float(np.sqrt((away * away).sum())) / len(differences)


def _numbers(config: SearchConfig) -> Floats:
    """The discrete parameters of a setting, each on a scale of about 1, for distances."""
    deep = [np.log10(depth) for depth in config.depths.values() if depth is not None]
    return np.concatenate(([np.mean(deep or [0.0])], _parameters(config.strategy)))


def _parameters(expr: Expr) -> Floats:
    """The discrete parameters of a strategy, each on a scale of about 1."""
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
    return np.concatenate([np.array(found, dtype=np.float64), *(_parameters(child) for child in expr.children())])
