"""Tuning one strategy: choose among its settings and weights, and say what to do and what to expect of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.documents.tuning import AblationRecord, TuningDocument
from steelyard_eval.common.renderers import drawn
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.decide.drawn import by_drawn
from steelyard_eval.recording.select import open_recording
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.ablation import ablation
from steelyard_eval.tune.attempt import ChosenWeights
from steelyard_eval.tune.restriction import NONE, Restriction
from steelyard_eval.tune.task import Task, prepare
from steelyard_eval.tune.tuned_parameters import untuned
from steelyard_eval.tune.tuning_document import TuningDecision, judge

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Tuning(ChosenWeights[TuningDocument]):
    """What tuning found."""

    TEXT = "tuning_text"

    config: SearchConfig

    def to_frame(self) -> pd.DataFrame:
        """A row an estimate: in sample, the current one there, the gain promised if stated, the gain held out."""
        import pandas as pd

        estimates = {
            "in_sample": self.record["in_sample"],
            "baseline": self.record["baseline"],
            "promise": self.record["promise"] if self.record["promise_stated"] else None,
            "holdout": self.record["holdout"],
        }
        return pd.DataFrame([{"estimate": name, **figures} for name, figures in estimates.items() if figures])

    def plot(self, what: str = "curve") -> Figure:
        """Plot a figure of the tuning.

        Parameters
        ----------
        what : str
            curve (the objective along the first weight), queries (the difference on each), categories; of a tuning
            with ablation also signals (what each is worth) and labels (what more of them are worth).
        """
        return drawn("tuned", self.record, what)


def tune(
    source: Dataset | str | Path,
    contender: Given | None = None,
    strategy: str | None = None,
    *,
    metric: str = "nDCG@10",
    limit: int | None = None,
    embedder: str = "auto",
    recording: str | Path | None = None,
    seed: int = 0,
    ablate: bool = False,
    target: str = "",
    latency: float | None = None,
    embedding_calls: float | None = None,
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> Tuning:
    """Choose a setting and say whether it should replace the current one: ship, try or keep.

    Tuned on train, else dev, else every query outside test; each labelled query serves to choose and, left out in
    its turn, to prove (`steelyard_eval.decide.rule`). Where there is a split `test` besides, the gain there is
    reported. With `ablate` the document has under "ablation" what signals, weights and labels are worth
    (`steelyard_eval.tune.ablation`).

    `source` is the data set or its folder, `now` gives the date of the weights file; without a `contender` the
    start is `plain`, for a recording of lists their RRF. The other parameters are those of `Workbench.tune`, and
    of `Workspace.open`. With a `recording` depths beyond it are not tried.

    Ctrl-C ends the ablation, which then is null. Raises ConfigError when the strategy has nothing to tune or
    fewer than two judged queries are left.
    """
    restriction = Restriction(target, latency, embedding_calls)
    dataset = as_dataset(source)
    table = None if recording is None else open_recording(Path(recording), dataset)
    decides = by_drawn(dataset)
    task = prepare(decides, contender, strategy, metric, limit, embedder, seed, workspace, table)
    if decides is not dataset:
        task = replace(task, notices=[*decides.notices[len(dataset.notices) :], *task.notices])
    if recording is not None:
        task = replace(task, origin={"--recording": recording})
    return proven(task, ablate, now, restriction)


def proven(
    task: Task, ablate: bool = False, now: Callable[[], float] = time.time, restriction: Restriction = NONE
) -> Tuning:
    """The tuning of a task that is prepared; see `tune`."""
    judged = TuningDecision(task).restricted(restriction)
    document, config, attempt = judge(judged, now)
    aside = tuple(untuned(document["notices"]))
    if not ablate:
        return Tuning(document, config, attempt, aside=aside)
    document["ablation"] = _ablation(task, judged)
    return Tuning(document, config, attempt, document["ablation"] is None, aside)


def _ablation(task: Task, judged: TuningDecision) -> AblationRecord | None:
    try:
        return ablation(task, judged)
    except KeyboardInterrupt:
        return None
