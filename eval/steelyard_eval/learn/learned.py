"""`learn`: which weights a feedback log and labels suggest, and whether it is enough to change anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.config.adaptive import Feedback, adapt
from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.choose.chosen_weights import ChosenWeights
from steelyard_eval.common.answer import Conclusion, name_of
from steelyard_eval.common.documents.learn import LearnDocument
from steelyard_eval.common.renderers import drawn
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.logs import HeldLog
from steelyard_eval.decide.provenance import origin
from steelyard_eval.decide.steps import to_do
from steelyard_eval.decide.wording import named
from steelyard_eval.learn.acts import KINDS
from steelyard_eval.learn.case import LogCase, prepare
from steelyard_eval.learn.decided import LogDecision, decide_from_log
from steelyard_eval.learn.learned_document import document
from steelyard_eval.learn.learned_sentence import ask
from steelyard_eval.learn.learned_text import learned as learned_text
from steelyard_eval.recording.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEARNER, ADAPTIVE = "labels", "adaptive"
CHOICES = (LEARNER, ADAPTIVE)
"""Rules by which weights are chosen; only the first can ship."""


class Learned(ChosenWeights[LearnDocument]):
    """What was learned."""

    config: SearchConfig

    def __str__(self) -> str:
        return learned_text(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row a view: what the acts alone say that what was chosen, or came nearest, gains, with its errors."""
        import pandas as pd

        return pd.DataFrame(self.record["views"])

    def plot(self, what: str = "acts") -> Figure:
        """Plot how often relevant entries and others are acted upon by place, or what acts follow.

        Parameters
        ----------
        what : str
            acts, examination (how often places are looked at), or follows (how much the label and each signal
            raise the chance of an act, given the place).
        """
        return drawn("learned", self.record, what)


def learn(
    dataset: Dataset,
    feedback: str | Path | HeldLog | None = None,
    current: Given | None = None,
    *,
    rule: str = LEARNER,
    labels: bool = True,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> Learned:
    """Learn weights from a feedback log and labels, and say whether they should replace those that are used today.

    The parameters are those of `Workbench.learn` and of `Workspace.open`; the log may be compressed.

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
    if rule == LEARNER:
        return _answer(decide_from_log(case, labels), now)
    ruled = _ruled(case)
    return _adapted(decide_from_log(case, labels=False), *ruled, now)


def _answer(decision: LogDecision, now: Callable[[], float]) -> Learned:
    case = decision.case
    record = document(decision, LEARNER)
    facts = {**_provenance(case, now), "verdict": decision.verdict}
    if decision.recommended is not None:
        facts["promise"] = record["promise"]
    current = replace(case.config, provenance=facts)
    if decision.offered is None:
        return Learned(record, current)
    picked = replace(decision.offered, provenance=facts)
    return Learned(record, picked) if decision.verdict == "ship" else Learned(record, current, picked)


def _ruled(case: LogCase) -> tuple[SearchConfig, dict[str, float]]:
    """The current configuration after the rule of Soleri's document, and what it counted.

    One weight follows the rate of accepted results (`config/adaptive.py`). Raises ConfigError where the system has
    no rule.
    """
    rule = find_system(case.config.name).adaptive
    if rule is None:
        raise ConfigError(
            f"{case.config.name} documents no rule that adapts weights to feedback; name --current soleri"
        )
    acts = case.hits.acts
    counts = dict(zip(KINDS, np.rint(acts.sum(axis=0)).astype(int).tolist(), strict=True))
    feedback = Feedback(*(counts.get(name, 0) for name in ("accepted", "dismissed", "modified", "failed")))
    return adapt(case.config, feedback, rule), {**vars(feedback), "rate": feedback.rate}


def _adapted(
    found: LogDecision, chosen: SearchConfig, counted: Mapping[str, float], now: Callable[[], float]
) -> Learned:
    """What Soleri's rule chooses, as an attempt; the verdict on it is keep, for it proves nothing."""
    case = found.case
    record = document(found, ADAPTIVE)
    record["counted"] = counted
    would = "would use other weights" if chosen != case.config else "would change nothing"
    told = f"Keep {name_of(case.label)}: the rule {ADAPTIVE} {would}{_counted(counted)}, and proves nothing."
    steps = () if chosen == case.config else to_do("try", ask(case), case.space.dataset, case.space.model)
    said = Conclusion(told, steps, named(chosen)).to_json()
    record = {**record, **said, "verdict": "keep", "chosen": {"strategy": str(chosen.effective)}}
    facts = {**_provenance(case, now), "verdict": "keep"}
    return Learned(record, replace(case.config, provenance=facts), replace(chosen, provenance=facts))


def _counted(counted: Mapping[str, float]) -> str:
    """What the rule counted."""
    counts = {name: count for name, count in counted.items() if name != "rate"}
    return f" after {', '.join(f'{count} {name}' for name, count in counts.items())}" if counts else ""


def _provenance(case: LogCase, now: Callable[[], float]) -> dict[str, object]:
    """The facts that a weights file holds of a log."""
    facts = origin(case.space.dataset, case.table.fingerprint, 0, now)
    return {**facts, "learned_from": "feedback", "objective": "nDCG@10"}
