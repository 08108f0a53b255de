"""`learn`: which weights a feedback log and labels suggest, and whether it is enough to change anything."""

import time
from dataclasses import replace as with_fields
from pathlib import Path

import numpy as np

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.base.extensions import extension
from steelyard.config import SearchConfig
from steelyard_eval.choose.answer import ChosenAnswer
from steelyard_eval.common.tabular import Figure, Frame, as_frame
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.logs import HeldLog
from steelyard_eval.learn.counts import KINDS
from steelyard_eval.learn.decision import decide_from_log
from steelyard_eval.learn.joined_log import LogCase, prepare
from steelyard_eval.learn.result import adaptive, learned
from steelyard_eval.recording.provenance import origin, promised
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Decision, Row, replace

LEARNER, ADAPTIVE = "labels", "adaptive"
RULES = (LEARNER, ADAPTIVE)  # rules by which weights are chosen; only the first can ship


class Learned(ChosenAnswer):
    """What was learned."""

    def to_frame(self) -> Frame:
        """Return a row for each view: what labels and acts say that what was chosen, or came nearest, gains."""
        return as_frame(self.result.table("gains"))

    def plot(self, metric: str | None = None, *, what: str = "places") -> Figure:
        """Plot how often relevant entries and others are acted upon by place, or another figure (gains, follows).

        The last is how much the label and each signal raise the chance of an act, given the place.
        """
        return super().plot(metric, what=what)


def learn(
    dataset: Dataset,
    feedback: str | Path | HeldLog | None = None,
    current: Given | None = None,
    *,
    rule: str = LEARNER,
    labels: bool = True,
    embedder: str = "auto",
    workspace: Workspace | None = None,
) -> Learned:
    """Learn weights from a feedback log and labels, and say whether they should replace those that are used today.

    The parameters are those of `Workbench.learn` and of `Workspace.open`; the log may be compressed. Raises
    DataError when there is no log, it cannot be read, or nothing in it can be used, and ConfigError for an unknown
    rule, or a current contender without weights.
    """
    if rule not in RULES:
        raise ConfigError(f"there is no rule {quote(rule)}{nearest(rule, RULES)}")
    path = feedback or dataset.feedback
    if path is None:
        raise DataError(f"{dataset.name} has no feedback.jsonl; name a log with --feedback")
    case = prepare(dataset, path, current, embedder=embedder, workspace=workspace, now=time.time())
    ruled = _ruled(case) if rule == ADAPTIVE else None
    decision = decide_from_log(case, labels and ruled is None)
    found, offered = learned(decision), decision.suggested_config
    if ruled:
        offered, counted = ruled
        rows = [found.rows[0], Row("chosen", "strategy", str(offered.effective))]
        found = replace(found, answer=adaptive(case, offered, counted), decision=Decision("keep"), rows=rows)
    facts = {**origin(case.space.dataset, case.table.fingerprint, 0), "learned_from": "feedback"}
    facts |= {"objective": "nDCG@10", "verdict": "keep" if ruled else decision.verdict}
    if (decided := decision.recommended) is not None:
        facts["promise"] = promised(decided.ruling.gain, str(decided.choice.metric), len(decided.choice.queries))
    current_config = with_fields(case.config, provenance=facts)
    picked = None if offered is None else with_fields(offered, provenance=facts)
    ships = picked is not None and facts["verdict"] == "ship"
    return Learned(found, config=picked) if ships else Learned(found, config=current_config, attempt=picked)


def _ruled(case: LogCase) -> tuple[SearchConfig, dict[str, float]]:
    """The current configuration after the rule of Soleri's document, and what it counted.

    One weight follows the rate of accepted results (the extension `adaptive`). Raises ConfigError without one.
    """
    counts = dict(zip(KINDS, np.rint(case.hits.acts.sum(axis=0)).astype(int).tolist(), strict=True))
    ruled = extension("adaptive")
    feedback = ruled.Feedback(*(counts.get(name, 0) for name in ("accepted", "dismissed", "modified", "failed")))
    return ruled.adapt_system(case.config, feedback), {**vars(feedback), "rate": feedback.rate}
