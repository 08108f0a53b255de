"""The main jobs on the data set that comes with the package: recommend, learn, report, write the weights."""

from __future__ import annotations

from pathlib import Path

from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.starter import workshop
from steelyard_eval.learn import Learned, learn
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.recommendation import Recommendation, recommend


def demo(out: Path, dataset: Dataset | None = None) -> tuple[Recommendation, Learned | None, list[Path]]:
    """Recommend by the labels, learn from the feedback log alone, and write reports and weights.

    Returns the recommendation, what was learned, and the files written. The same data set gives the same bytes,
    apart from timings.
    """
    data = dataset or load(workshop())
    space = Workspace.open(data)
    found = recommend(data, workspace=space)
    files = [*found.report(out), *found.save_weights(out / "search-weights.json")]
    learned = learn(data, labels=False, workspace=space) if data.feedback is not None else None
    if learned is not None:
        files += [*learned.report(out / "learned"), *learned.save_weights(out / "learned" / "search-weights.json")]
    return found, learned, files
