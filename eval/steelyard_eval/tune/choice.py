"""The choice of a setting for a set of queries: the exact optimum of every setting, then the nearest that ties.

The optimum is a fit to these queries, and the best of many is flattered. So the current setting stays unless the
best one beats it by `SWITCH` standard errors of the paired difference. Else, of the settings that these queries
cannot tell from the best (within `TIED` standard errors), the one nearest to the current setting is taken, in the
middle of its plateau; Breiman, Friedman, Olshen and Stone (1984) choose trees so. The figures behind both numbers:
docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.config import SearchConfig
from steelyard.fusion import Expr
from steelyard.table import Bools, Floats, Indices
from steelyard_eval.exact.curve import SAME
from steelyard_eval.exact.optimise import Found
from steelyard_eval.exact.sweep import segment
from steelyard_eval.tune.candidate import Candidate

SWITCH = 2.5
"""Standard errors by which the best setting has to beat the current one to replace it."""
TIED = 0.5
"""Standard errors within which other settings tie with the best."""
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
    `values` and `best_values` are the measure of every query of the recording, float64[Q], chosen for or not.
    """

    config: SearchConfig
    value: float
    optimum: SearchConfig
    best: float
    certificate: str
    bound: float
    plateau: tuple[float, ...]
    looks: int
    whole: bool
    values: Floats = field(compare=False, repr=False)
    best_values: Floats = field(compare=False, repr=False)


@dataclass(frozen=True)
class _Tried:
    """A candidate with its best weights, and the measure under them, float64[queries that count]."""

    candidate: Candidate
    found: Found
    values: Floats


class Chooser:
    """Chooses among settings over one recording, for any of its queries; the first setting is the current one."""

    def __init__(self, candidates: Sequence[Candidate], units: Indices, seed: int) -> None:
        """`units` int64[Q] numbers the groups of queries that vary together."""
        self.candidates = list(candidates)
        self.units = units
        self.seed = seed

    def choose(self, queries: Bools, progress: Progress = in_silence, *, proof: bool = True) -> Choice:
        """The setting for the queries where bool[Q] is true.

        Without `proof` nothing is certified where that takes branch and bound: many choices need none. Ctrl-C ends
        the search with the best of the settings that were searched; raises KeyboardInterrupt when there is none.
        """
        tried: list[_Tried] = []
        try:
            for candidate in progress(self.candidates, lambda: f"best {_best(tried).found.value:.4f}"):
                found = candidate.search(queries, self.seed, proof)
                tried.append(_Tried(candidate, found, candidate.values(found.weights)[queries]))
        except KeyboardInterrupt:
            if not tried:
                raise
        top = _best(tried)
        chosen, weights = self._selected(tried, top, queries)
        return Choice(
            config=chosen.written(weights),
            value=chosen.mean(weights, queries),
            optimum=top.candidate.written(top.found.weights),
            best=top.found.value,
            certificate="exact" if all(one.found.certificate == "exact" for one in tried) else "best-found",
            bound=max(one.found.bound for one in tried),
            plateau=chosen.plateau(weights, queries),
            looks=sum(one.found.evaluations for one in tried),
            whole=len(tried) == len(self.candidates),
            values=chosen.values(weights),
            best_values=top.candidate.values(top.found.weights),
        )

    def _selected(self, tried: Sequence[_Tried], top: _Tried, queries: Bools) -> tuple[Candidate, Floats]:
        """The current setting where it stays; else the nearest that ties with the best."""
        current = self.candidates[0]
        if self._within(SWITCH, top.values, current.values(current.start)[queries], queries):
            return current, current.start
        here = _numbers(current.config)
        tied = [one for one in tried if self._within(TIED, top.values, one.values, queries)]
        near = min(tied, key=lambda one: float(np.abs(_numbers(one.candidate.config) - here).sum()))
        return near.candidate, self._settled(near, top, queries)

    def _settled(self, near: _Tried, top: _Tried, queries: Bools) -> Floats:
        """On the way from the current weights to the optimum the first that tie with the best, amid a plateau."""
        candidate, found = near.candidate, near.found
        way = segment(candidate.objective, candidate.start, found.weights)
        places = np.linspace(0.0, 1.0, LOOKS + 1).tolist()
        tied = (t for t in places if self._within(TIED, top.values, way.values(t)[queries], queries))
        t = next(tied, 1.0)
        if t == 0.0:
            return candidate.start
        plateau = way.curve(queries).around(t, float(way.values(t)[queries].mean()))
        if plateau.high == 1.0:  # the plateau of the optimum, which is in its middle
            return candidate.short(found.weights, queries)
        weights, middle = (candidate.start + at * (found.weights - candidate.start) for at in (t, plateau.t))
        better = candidate.mean(middle, queries) >= candidate.mean(weights, queries) - SAME
        return candidate.short(middle if better else weights, queries)

    def _within(self, errors: float, best: Floats, other: Floats, queries: Bools) -> bool:
        """Whether the mean difference lies within so many standard errors, by groups of queries."""
        return float((best - other).mean()) <= errors * standard_error(best - other, self.units[queries]) + SAME


def _best(tried: Sequence[_Tried]) -> _Tried:
    return max(tried, key=lambda one: one.found.value)


def standard_error(differences: Floats, units: Indices) -> float:
    """Of the mean of paired differences float64[Q], with queries of one unit int64[Q] varying together.

    Infinite for a single unit, which says nothing of how far others would lie.
    """
    away = np.bincount(np.unique(units, return_inverse=True)[1], differences - differences.mean())
    if len(away) < 2:
        return np.inf
    return float(np.sqrt((away * away).sum() * len(away) / (len(away) - 1))) / len(differences)


def _numbers(config: SearchConfig) -> Floats:
    """The discrete parameters of a setting, each on a scale of about 1, for distances."""
    deep = [np.log10(depth) for depth in config.depths.values() if depth is not None]
    return np.concatenate(([np.mean(deep or [0.0])], _parameters(config.strategy)))


def _parameters(expr: Expr) -> Floats:
    """The discrete parameters of a strategy and of what is in it, each on a scale of about 1."""
    own = np.array(expr.coordinates(), dtype=np.float64)
    return np.concatenate([own, *(_parameters(child) for child in expr.children())])
