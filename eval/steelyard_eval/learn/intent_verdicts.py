"""Weights by intent: the same verdict on the queries of each intent alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.config.search_config import SearchConfig
from steelyard_eval.learn.case import LogCase
from steelyard_eval.learn.verdict import SURER, Judged, judge

LEAST = 20
"""Queries of an intent, or of a half of the log, below which it is not told apart."""


def numbers(case: LogCase, queries: Indices) -> dict[str, Indices]:
    """int64[n] by intent: where its queries stand among some queries of the lists; intents of few are left out."""
    found: dict[str, list[int]] = {}
    for at, query in enumerate(queries.tolist()):
        if intent := case.queries[query].intent:
            found.setdefault(intent, []).append(at)
    return {intent: np.array(at, dtype=np.int64) for intent, at in sorted(found.items()) if len(at) >= LEAST}


def by_intent(case: LogCase, judged: Judged, labels: bool) -> dict[str, Judged]:
    """The decision on the queries of each intent; nothing where the log as a whole was refused.

    Labels are pooled where an intent has enough of them; without, its gain has to be surer than for all queries.
    """
    if judged.refusal is not None:
        return {}
    found = {}
    labelled = numbers(case, case.labelled)
    for intent, at in numbers(case, judged.cells.queries).items():
        cells = judged.cells.on(judged.cells.queries[at])
        own = labelled.get(intent, np.array([], dtype=np.int64))
        values = case.labels[:, own] if labels and len(own) else None
        unit = case.lists.unit[case.labelled[own]]
        found[intent] = judge(case.lists, cells, values, case.log.given, SURER, unit)
    return found


def combined(case: LogCase, judged: Judged, intents: Mapping[str, Judged]) -> SearchConfig:
    """What ships: the weights for every query, and those of the intents that need others."""
    candidate = judged.candidate if judged.verdict == "ship" else 0
    own = {
        intent: case.lists.config(one.candidate).strategy
        for intent, one in intents.items()
        if one.verdict == "ship" and one.candidate != candidate
    }
    return replace(case.lists.config(candidate), by_intent=own)
