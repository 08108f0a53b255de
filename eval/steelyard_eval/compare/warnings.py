"""What a reader has to know before the table: too few queries, unjudged hits, queries that vary together, LSA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard.embedders import installed
from steelyard.memory.query import Query
from steelyard_eval.common.documents.results import ComparedRecord
from steelyard_eval.common.markup import counted
from steelyard_eval.compare.contenders import distinct, read_all
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.alike import Pair
from steelyard_eval.datasets.groups import joined, lack_groups, unit_numbers
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.rankings import spelled

FEW = 25
"""Judged queries below which hardly anything is told apart."""
COARSE = 0.1
"""A detectable difference above which most comparisons end without an answer."""
UNJUDGED = 0.05
"""A difference in Judged@10 that can make a loser of a better list."""
JUDGED = Measure("Judged", 10)
PAIRS = 3
"""Pairs of queries that are named in one warning."""
SHOWN = 4
"""Contenders that are named in one warning."""
Values = Mapping[str, Floats]
"""Label -> float64[Q] of one metric."""


def warnings(
    queries: Sequence[Query],
    values: Values,
    judged: Values,
    baseline: str,
    comparisons: Sequence[ComparedRecord],
    model: str,
    near: Sequence[Pair] = (),
    proven: bool = False,
    dataset: Dataset | None = None,
) -> list[str]:
    """The warnings, most important first.

    `values` has the primary metric of every contender, `judged` its Judged@10, where there is one and an unjudged
    hit may be relevant; `comparisons`
    are the records of the tests; `model` is the name of the vectors' model; `near` are the pairs of queries that
    ask nearly the same; where a gain is `proven`, what so few queries miss matters no more; `dataset` is what to
    judge.
    """
    return [
        *([] if proven else _few(queries, comparisons)),
        *dependent(queries, near, values, baseline),
        *_unjudged(judged, baseline, dataset),
        *_lsa(model),
    ]


def _few(queries: Sequence[Query], comparisons: Sequence[ComparedRecord]) -> list[str]:
    """What so few queries miss; how many to label is the answer's to say."""
    detectable = [row["mde"] for row in comparisons if row["mde"]]
    count, units = len(queries), len(set(unit_numbers(queries).tolist()))
    if not detectable:
        return [f"{count} judged queries tell little apart"] if units < FEW else []
    usual = median(detectable)
    if units >= FEW and usual <= COARSE:
        return []
    return [
        f"{count} judged queries are few: most differences are found 4 times in 5 only from about {usual:.2f} on"
    ]


def dependent(queries: Sequence[Query], near: Sequence[Pair], values: Values, baseline: str) -> list[str]:
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
    effective = median(effective_number(difference, unit) for difference in differences)
    worth = f"worth about {effective:.0f} independent queries; give them a group to have that counted"
    notices = []
    if scopes and effective <= 0.9 * len(queries):
        shared = f"the {len(queries)} queries share {len(first)} scopes, and those of one scope vary together"
        notices.append(f"{shared}: they are {worth}")
    if near:
        asked = counted(len({other for _, other in near}), "query asks", "queries ask")
        some = "; ".join(f"{shown(queries[a].id)} and {shown(queries[b].id)}" for a, b in near[:PAIRS])
        more = "; ..." if len(near) > PAIRS else ""
        notices.append(f"{asked} nearly what another one asks ({some}{more}): the {len(queries)} are {worth}")
    return notices


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


def _unjudged(judged: Values, baseline: str, dataset: Dataset | None) -> list[str]:
    """Contenders whose first ten hits are judged less often than the baseline's, and the reverse."""
    if baseline not in judged:
        return []
    share = {label: float(column.mean()) for label, column in judged.items()}
    base = share.pop(baseline)
    less = [label for label, value in share.items() if value < base - UNJUDGED]
    more = [label for label, value in share.items() if value > base + UNJUDGED]
    parts = [f", {how} of {_some(labels)}" for how, labels in (("fewer", less), ("more", more)) if labels]
    if not parts:
        return []
    return [
        f"an unjudged hit counts as a miss, and {base:.0%} of the first ten hits of {baseline} are "
        f"judged{''.join(parts)}. A list with fewer may be better than it looks"
        f"{_judging(dataset, baseline, (*less, *more))}"
    ]


def _judging(dataset: Dataset | None, baseline: str, others: Iterable[str]) -> str:
    """How to judge what the baseline and the first other parts on that can be typed; tuned rows cannot."""
    for other in others:
        try:
            distinct(read_all([baseline, other]))
        except ConfigError:
            continue
        if dataset and (command := spelled("judge", dataset, baseline, other, options={})):
            return f"; to judge what two lists part on: {command}"
    return ""


def _some(labels: Sequence[str]) -> str:
    """The first few labels."""
    left = len(labels) - SHOWN
    others = f" and {left} other{'s' if left > 1 else ''}" if left > 0 else ""
    return "; ".join(labels[:SHOWN]) + others


def _lsa(model: str) -> list[str]:
    """What LSA may hide, with the option for a neural model where one is installed here."""
    if not model.startswith("lsa"):
        return []
    told = "the vectors are LSA, fitted on these texts; a neural model may rank the strategies in another order"
    here = installed()
    return [f"{told}, and may find more; --embedder {here[0]} is installed here" if here else told]


def shallow(measures: Sequence[Measure], limit: int) -> list[str]:
    """A notice when the limit is below a cutoff, because the missing results count as misses."""
    cut = [str(measure) for measure in measures if (measure.cutoff or 0) > limit]
    return [f"the limit {limit} is below the cutoff of {', '.join(cut)}"] if cut else []
