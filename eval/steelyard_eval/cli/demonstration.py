"""The main job on the data set that comes with the package: recommend, report, write the weights."""

from __future__ import annotations

from pathlib import Path

from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import workshop
from steelyard_eval.recording.rankings.spelling import spelled
from steelyard_eval.tune.recommendation import Recommendation, recommend

WEIGHTS = "search-weights.json"


def demo(out: Path) -> tuple[Recommendation, list[Path], str]:
    """Recommend by the labels, and write the report and the weights.

    Returns the recommendation, the files written, and the command that learns from the set's feedback log alone.
    The same data set gives the same bytes, apart from timings.
    """
    data = load(workshop())
    found = recommend(data)
    files = [*found.report(out), *found.save_weights(out / WEIGHTS)]
    learn = spelled("learn", data, "--no-labels", options={"--out": out / "learned" / WEIGHTS})
    return found, files, str(learn)
