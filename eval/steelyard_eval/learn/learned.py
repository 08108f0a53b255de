"""`learn`: which weights a feedback log suggests, and whether it is enough to change anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.renderers import drawn
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.provenance import origin
from steelyard_eval.decide.refusal import Refusal, chosen_queries, uncovered
from steelyard_eval.learn.case import LogCase, prepare
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.intent_verdicts import by_intent, combined
from steelyard_eval.learn.learned_document import document, promise
from steelyard_eval.learn.rivals import RULES, rivals
from steelyard_eval.learn.soleri_rule import adapted
from steelyard_eval.learn.verdict import Judged, judge
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.attempt import ChosenWeights
from steelyard_eval.tune.recommendation_sentence import named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

OBJECTIVE = Measure("nDCG", PLACES)
LEARNER, ADAPTIVE = "classes", "adaptive"
CHOICES = (LEARNER, *RULES, ADAPTIVE)
"""Rules by which weights are chosen; only the first can ship."""


class Learned(ChosenWeights):
    """What was learned."""

    config: SearchConfig

    def to_frame(self) -> pd.DataFrame:
        """A row a view: the gain of what was chosen, or came nearest, with its errors."""
        import pandas as pd

        return pd.DataFrame(self.record["views"])

    def plot(self, what: str = "acts") -> Figure:
        """Plot how often relevant entries and others are acted upon by place, or how often places are examined.

        Parameters
        ----------
        what : str
            acts or examination.
        """
        return drawn("learned", self.record, what)


def learn(
    dataset: Dataset,
    feedback: str | Path | None = None,
    current: Given | None = None,
    *,
    rule: str = LEARNER,
    labels: bool = True,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> Learned:
    """Learn weights from a feedback log, and say whether they should replace those that are used today.

    Parameters
    ----------
    feedback : str or Path
        The log, JSON Lines, compressed or not; the data set's own by default.
    current : any contender
        What is used today; by default the policy that ranked most of the log, else the data set's system.
    rule : str
        `classes`, the learner; or a rule to compare it with, whose choice never ships: naive, ips, dr, adaptive.
    labels : bool
        Whether 30 labelled queries or more are pooled with the log.
    embedder : str
        See `Workspace.open`.

    Raises
    ------
    DataError
        When there is no log, it cannot be read, or nothing in it can be used.
    ConfigError
        For an unknown rule, or a current contender without weights.
    """
    if rule not in CHOICES:
        raise ConfigError(f"there is no rule {shown(rule)}{nearest(rule, CHOICES)}")
    path = feedback or dataset.feedback
    if path is None:
        raise DataError(f"{dataset.name} has no feedback.jsonl; name a log with --feedback")
    case = prepare(dataset, path, current, embedder=embedder, workspace=workspace, now=now())
    judged = _judged(case, labels)
    if rule == LEARNER:
        return _answer(case, judged, {} if case.listless else by_intent(case, judged, labels), now)
    return _rival(case, judged, rule, now)


def _judged(case: LogCase, labels: bool) -> Judged:
    """The decision; a log that our replay does not reproduce decides nothing, and chosen labels ship nothing."""
    if case.listless:
        return _listless(case)
    if not len(case.cells):
        equal = max(policy.agreement for policy in case.policies)
        raise DataError(
            f"the log is foreign: at best {equal:.0%} of its places are those of our lists under any weights of "
            f"{case.label}; name what ranked it with --current, and the data set that it belongs to"
        )
    unit = case.lists.unit[case.labelled]
    found = judge(case.lists, case.cells, case.labels if labels else None, case.log.given, unit=unit)
    used = sum(policy.searches for policy in case.policies) - case.foreign
    if case.foreign > used:
        refusal = Refusal(
            f"most of the log is foreign: {case.foreign:,} searches by policies that we cannot reproduce",
            "name what ranked it with --current",
        )
        return replace(found, verdict="keep", candidate=0, refusal=refusal)
    chosen = _chosen_labels(case, found) if found.verdict == "ship" and found.pooled else None
    return replace(found, verdict="try", refusal=chosen) if chosen else found


def _listless(case: LogCase) -> Judged:
    """Acts on single entries decide nothing: what else was shown, and where, is not known."""
    found = judge(case.lists, case.hits.cells(case.lists, np.ones(len(case.hits.row), dtype=bool)))
    refusal = Refusal(
        f"the log has {case.hits.tally.acts.sum():,.0f} acts on single entries, and not the lists that they were "
        "in, so it says nothing about weights",
        "log what your search shows, or label 20 queries",
    )
    return replace(found, verdict="keep", candidate=0, best=0, refusal=refusal)


def _unlisted(case: LogCase) -> dict[str, Any]:
    """What a log without lists says nothing about, for the document."""
    if not case.listless:
        return {}
    return {"views": [], "rivals": [], "halves": [], "intents": [], "flip": None, "off_policy": None}


def _chosen_labels(case: LogCase, judged: Judged) -> Refusal | None:
    """Why the labels that are pooled with the log cannot carry a ship, by what the data set says of them."""
    dataset, picked = case.space.dataset, case.lists.config(judged.candidate)
    return chosen_queries(dataset.sampled) or uncovered(
        dataset.pool, OBJECTIVE, case.label, case.config, named(picked)
    )


def _answer(case: LogCase, judged: Judged, intents: Mapping[str, Judged], now: Callable[[], float]) -> Learned:
    record = document(case, judged, {"rule": LEARNER, **_unlisted(case)}, intents)
    facts = {**_provenance(case, judged, now), "verdict": record["verdict"]}
    if record["verdict"] != judged.verdict:
        del facts["promise"]  # it is about every query alike, and weights change for single intents alone
    shipped = replace(combined(case, judged, intents), provenance=facts)
    if judged.verdict != "try":
        return Learned(record, shipped)
    picked = replace(case.lists.config(judged.candidate), by_intent=shipped.by_intent, provenance=facts)
    return Learned(record, shipped, picked)


def _rival(case: LogCase, judged: Judged, rule: str, now: Callable[[], float]) -> Learned:
    """What another rule chooses, as an attempt; the verdict on it is keep, for none of them proves anything."""
    own = replace(judged, verdict="keep", candidate=0)
    if rule == ADAPTIVE:
        chosen, extra = adapted(case)
    else:
        chosen, extra = case.lists.config(rivals(case.lists, case.cells, judged.examination)[rule]), {}
    record = document(case, own, {"rule": rule, **extra, **_unlisted(case)})
    record["chosen"] = {"strategy": str(chosen.effective)}
    would = f"would use {chosen.effective}" if chosen != case.config else "would change nothing"
    record["sentence"] = (
        f"The rule {rule} {would}{_counted(extra)}; it proves nothing, so your {case.label} stays."
    )
    facts = _provenance(case, own, now)
    return Learned(record, replace(case.config, provenance=facts), replace(chosen, provenance=facts))


def _counted(extra: Mapping[str, Any]) -> str:
    """What a rule counted, where it counts."""
    counts = {name: count for name, count in extra.get("counted", {}).items() if name != "rate"}
    return f" after {', '.join(f'{count} {name}' for name, count in counts.items())}" if counts else ""


def _provenance(case: LogCase, judged: Judged, now: Callable[[], float]) -> dict[str, Any]:
    """The facts that a weights file holds of a log."""
    facts = origin(case.space.dataset, case.fingerprint, 0, now)
    gain = promise(judged, judged.candidate or judged.best)
    ends = {"metric": "nDCG@10", "value": gain.mean, "low": gain.low, "high": gain.high}
    return {
        **facts,
        "learned_from": "feedback",
        "objective": "nDCG@10",
        "verdict": judged.verdict,
        "promise": {**ends, "queries": len(judged.cells.queries)},
    }
