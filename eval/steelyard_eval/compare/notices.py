"""What a reader has to know before the table: too few queries, unjudged hits, queries that vary together, LSA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard.embedders import installed
from steelyard.memory.query import Query
from steelyard_eval.compare.contenders import Contender, distinct, read_all
from steelyard_eval.compare.lists import Arena, Made
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import Pair, alike, joined, lack_groups, unit_numbers
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.provenance import tuned_here
from steelyard_eval.recording.steps import words_of
from steelyard_eval.result.structs import Fact, Paired, Said

FEW = 25
"""Judged queries below which hardly anything is told apart."""
COARSE = 0.1
"""A detectable difference above which most comparisons end without an answer."""
UNJUDGED = 0.05
"""A difference in Judged@10 that can make a loser of a better list."""
JUDGED = Measure("Judged", 10)
PAIRS = 3
"""Pairs of queries that are named in one warning."""
Values = Mapping[str, Floats]
"""Label -> float64[Q] of one metric."""


def of_lists(
    arena: Arena,
    made: Sequence[Made],
    judged: Sequence[Query],
    measures: Sequence[Measure],
    limit: int,
    timed: bool,
) -> Iterator[Said]:
    """On the data and on how the contenders ran; `judged` are the queries whose labels are used."""
    yield from (Said("told", {"text": text}) for text in arena.dataset.notices)
    yield from (said for one in made for said in one.notices)
    for one in made:
        if judged and isinstance(one.contender, Contender):
            yield from tuned_here(one.label, one.contender.config, arena.dataset, judged)
    if counts := [f"{one.label} {one.empty}" for one in made if one.empty]:
        yield Said("empty", {"queries": len(made[0].ranked.queries), "counts": counts})
    if cut := [str(measure) for measure in measures if (measure.cutoff or 0) > limit]:
        yield Said("shallow", {"limit": limit, "metrics": cut})
    yield from arena.notices(made, timed)


def of_values(
    dataset: Dataset,
    queries: Sequence[Query],
    values: Mapping[str, Mapping[str, Floats]],
    metric: str,
    baseline: str,
    tests: Iterable[Paired],
    model: str,
    proven: bool = False,
) -> list[Said]:
    """On what so few queries, and hits without labels, can hide, most important first.

    `values` are by label and metric. Where a gain is `proven`, what so few queries miss matters no more, and where
    everything is judged, an unjudged hit is not relevant.
    """
    primary, judged = (
        {label: own[name] for label, own in values.items() if name in own} for name in (metric, str(JUDGED))
    )
    return [
        *([] if proven else few(queries, tests)),
        *dependent(queries, alike(dataset, queries), primary, baseline),
        *([] if dataset.complete else unjudged(judged, baseline, dataset)),
        *lsa(model),
    ]


def few(queries: Sequence[Query], tests: Iterable[Paired]) -> list[Said]:
    """What so few queries miss; how many to label is the answer's to say."""
    detectable = [test.detectable for test in tests if test.detectable]
    facts: dict[str, Fact] = {"queries": len(queries)}
    units = len(set(unit_numbers(queries).tolist()))
    if not detectable:
        return [Said("tell_little", facts)] if units < FEW else []
    usual = median(detectable)
    return [] if units >= FEW and usual <= COARSE else [Said("few_queries", {**facts, "detectable": usual})]


def dependent(queries: Sequence[Query], near: Sequence[Pair], values: Values, baseline: str) -> list[Said]:
    """Queries that share a scope, or ask nearly the same, vary together without being declared a group.

    How many independent queries they are worth is the median over the contenders, of their differences from the
    baseline, with everything that varies together as one.
    """
    scopes = [str(query.filters) for query in queries] if lack_groups(queries) else []
    first: dict[str, int] = {}
    pairs = [*near, *((first.setdefault(scope, i), i) for i, scope in enumerate(scopes))]
    if not pairs:
        return []
    base, unit = values[baseline], joined(unit_numbers(queries), pairs)
    differences = [column - base for label, column in values.items() if label != baseline] or [base]
    worth = float(median(effective_number(difference, unit) for difference in differences))
    facts: dict[str, Fact] = {"queries": len(queries), "worth": worth}
    said = []
    if scopes and worth <= 0.9 * len(queries):
        said.append(Said("scopes", {**facts, "scopes": len(first)}))
    if near:
        named = [f"{shown(queries[a].id)} and {shown(queries[b].id)}" for a, b in near[:PAIRS]]
        count = len({other for _, other in near})
        said.append(Said("nearly", {**facts, "count": count, "pairs": named, "more": len(near) > PAIRS}))
    return said


def effective_number(values: Floats, groups: Sequence[str] | Indices) -> float:
    """N over the design effect: the variance of the mean over whole groups, beside that of independent queries.

    Kish, Survey Sampling (1965), 5.4; at most n, and 1 for a single group.
    """
    n = len(values)
    _, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        return 1.0
    alone = float(values.var(ddof=1)) / n
    away = np.bincount(code, values) - values.mean() * counts
    together = float((away**2).sum()) * len(counts) / (len(counts) - 1) / n**2
    return n * min(1.0, alone / together) if together > 0 else float(n)


def unjudged(judged: Values, baseline: str, dataset: Dataset) -> list[Said]:
    """Contenders whose first ten hits are judged less often than the baseline's, and the reverse."""
    if baseline not in judged:
        return []
    share = {label: float(column.mean()) for label, column in judged.items()}
    base = share.pop(baseline)
    fewer = [label for label, value in share.items() if value < base - UNJUDGED]
    more = [label for label, value in share.items() if value > base + UNJUDGED]
    if not fewer and not more:
        return []
    command = _judging(dataset, baseline, (*fewer, *more))
    facts: dict[str, Fact] = {"share": base, "baseline": baseline, "fewer": fewer or None, "more": more or None}
    return [Said("unjudged", {**facts, "command": command or None})]


def _judging(dataset: Dataset, baseline: str, others: Iterable[str]) -> list[str]:
    """How to judge what the baseline and the first other part on that can be typed; tuned rows cannot."""
    for other in others:
        try:
            distinct(read_all([baseline, other]))
        except ConfigError:
            continue
        return words_of("judge", dataset, baseline, other, options={})
    return []


def lsa(model: str) -> list[Said]:
    """What LSA may hide, with the option for a neural model where one is installed here."""
    if not model.startswith("lsa"):
        return []
    here = installed()
    return [Said("lsa", {"kind": here[0]} if here else {})]
