"""The best weights of the settings of one strategy, searched exactly: what tuning could reach on these very
queries.

It is a fit to them, and the best of many is optimistically biased, so it is reported and never shipped. What ships
is chosen among weights that were laid out before any label was read (`decide.rule`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from steelyard.base.arrays import Bools, Floats
from steelyard.config.search_config import SearchConfig
from steelyard_eval.tune.candidate import Candidate
from steelyard_eval.weights.exact.optimise import BestFound

SWEPT = 2
"""Weights that every setting is searched for; of more, the setting that does best as laid out."""
Progress = Callable[[Sequence[Candidate], Callable[[], str]], Iterable[Candidate]]
"""Shows how far a sequence has come, with a word on how it goes."""


def in_silence(items: Sequence[Candidate], status: Callable[[], str]) -> Iterable[Candidate]:
    """No progress is shown."""
    return items


@dataclass(frozen=True)
class Optimum:
    """The best configuration found for a set of queries.

    `value` is its mean, `lines` counts those that were swept, `whole` is false
    when the search was broken off. `values` float64[Q] are those of all queries of the recording.
    """

    config: SearchConfig
    value: float
    certificate: str
    lines: int
    whole: bool
    values: Floats = field(compare=False, repr=False)


def optimum(
    candidates: Sequence[Candidate],
    queries: Bools,
    seed: int,
    progress: Progress = in_silence,
    *,
    every: bool = True,
) -> Optimum:
    """Search each candidate for the queries where bool[Q] is true; of equal ones the first.

    `every` is false where other settings were left out before, so that nothing is certified of them. Ctrl-C ends
    the search with the best so far; raises KeyboardInterrupt when there is none.
    """
    tried: list[tuple[Candidate, BestFound]] = []
    try:
        for candidate in progress(candidates, lambda: f"best {_best(tried)[1].value:.4f}"):
            tried.append((candidate, candidate.search(queries, seed)))
    except KeyboardInterrupt:
        if not tried:
            raise
    top, best = _best(tried)
    exact = every and all(result.certificate == "exact" for _, result in tried)
    return Optimum(
        config=top.written(best.weights),
        value=best.value,
        certificate="exact" if exact else "best-found",
        lines=sum(result.lines for _, result in tried),
        whole=len(tried) == len(candidates),
        values=top.values(best.weights),
    )


def _best(tried: Sequence[tuple[Candidate, BestFound]]) -> tuple[Candidate, BestFound]:
    return max(tried, key=lambda pair: pair[1].value)
