"""Tuning as a claim with its evidence: in sample, out of fold, on the holdout, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.config import SearchConfig
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.progress import bar
from steelyard_eval.recording.select import open_recording
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.results import Result, frame_html
from steelyard_eval.tune.ablation import ablation
from steelyard_eval.tune.choice import Choice
from steelyard_eval.tune.task import Task, prepare
from steelyard_eval.tune.verdict import Record, judge, out_of_fold

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Tuning(Result):
    """What tuning found. `record` is the JSON document; `config` is what a weights file should hold.

    `interrupted` says that Ctrl-C left something out of the record.
    """

    record: Mapping[str, Any]
    config: SearchConfig
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """The document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row an estimate: in sample, out of fold, holdout, baseline."""
        import pandas as pd

        names = ("in_sample", "out_of_fold", "holdout", "baseline", "gain")
        return pd.DataFrame([{"estimate": name, **self.record[name]} for name in names if self.record[name]])

    def __repr__(self) -> str:
        return f"Tuning({self.record['verdict']}: {self.record['strategy']})"

    def _repr_html_(self) -> str:
        import html

        verdict, strategy = html.escape(self.record["verdict"]), html.escape(self.record["strategy"])
        return f"<p><b>{verdict}</b>: <code>{strategy}</code></p>{frame_html(self.to_frame())}"

    def save(self, path: str | Path) -> None:
        """Write the weights file that search loads: the tuned weights if proven, else the current ones."""
        self.config.save(path)

    def report(self, path: str | Path) -> list[Path]:
        """Write the report (HTML, Markdown, JSON) into this folder; returns its paths."""
        from steelyard_eval.report import write_report

        return write_report(self.to_json(), path)

    def plot(self) -> Figure:
        """The objective along the weight, where there is one."""
        from steelyard_eval.plots import curve

        return curve(self.record["curve"], self.record["objective"], "weight of the first signal")


def tune(
    source: Dataset | str | Path,
    system: str = "plain",
    strategy: str | None = None,
    *,
    metric: str = "nDCG@10",
    limit: int | None = None,
    embedder: str = "auto",
    recording: str | Path | None = None,
    seed: int = 0,
    ablate: bool = False,
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> Tuning:
    """Search the best setting and say whether it should replace the current one.

    Tuned on train, else dev, else a seeded 80%; held out test, else the rest. The verdict is `ship`
    when the gain on the held-out queries lies above 0, by its interval and by a sign-flip test at 5%,
    else `keep-default`. With `ablate` the document says under "ablation" what signals, weights and labels are
    worth (`steelyard_eval.tune.ablation`).

    Parameters
    ----------
    source : Dataset, str or Path
        The data set, or its folder.
    system : str
        What searches: ``name`` or ``name:profile``. A recording of lists has no system.
    strategy : str
        The strategy to start from; the system's own by default, the RRF of all lists for a recording of lists.
    metric : str
        The objective, by its name in ir_measures.
    limit : int
        Length of the lists; the cutoff of the metric by default.
    embedder : str
        See `Workspace.open`.
    recording : str or Path
        A folder that `record` wrote, with all queries: nothing is searched, and depths beyond it are not tried.
    seed : int
        Of the drawing of queries, of folds and of resampling.
    ablate : bool
        Whether the ablation is made.
    workspace : Workspace
        The data set when it is indexed already.
    now : function
        The time in seconds UTC, for the date of the weights file.

    Ctrl-C ends the search with the best found so far, which is not proven and so not shipped: `whole` is false.
    Later it ends the ablation, which then is null. Raises ConfigError when the strategy has nothing to
    tune or no judged queries are left.
    """
    dataset = as_dataset(source)
    table = None if recording is None else open_recording(Path(recording), dataset)
    task = prepare(dataset, system, strategy, metric, limit, embedder, seed, workspace, table)
    return proven(task, ablate, now)


def proven(task: Task, ablate: bool = False, now: Callable[[], float] = time.time) -> Tuning:
    """The tuning of a task that is prepared; see `tune`."""
    choice = task.chooser.choose(task.inside, bar("tuning"))
    folded = out_of_fold(task) if choice.whole else None
    document, config = judge(task, choice, folded, now)
    if not ablate:
        return Tuning(document, config, folded is None)
    document["ablation"] = _ablation(task, choice) if folded else None
    return Tuning(document, config, document["ablation"] is None)


def _ablation(task: Task, choice: Choice) -> Record | None:
    try:
        return ablation(task, choice)
    except KeyboardInterrupt:
        return None
