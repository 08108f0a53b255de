"""The main job on the data set that comes with the package: recommend, report, write the weights."""

from __future__ import annotations

from pathlib import Path

from steelyard_eval.choose.recommend import Recommendation, recommend
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import workshop
from steelyard_eval.recording.steps import beside, spelled, today

WEIGHTS = "search-weights.json"


def demo(out: Path) -> tuple[Recommendation, list[Path], str]:
    """Recommend by the labels, and write the report and the weights.

    Returns the recommendation, the files written, and the command that learns from the set's feedback log alone.
    The same data set gives the same bytes, apart from timings.
    """
    folder, here = workshop(), Path.cwd()
    data = load(folder.relative_to(here) if folder.is_relative_to(here) else folder)
    target = out / WEIGHTS
    answer, _ = recommend(data).saved(target, data)  # so that the steps name these files
    weights = [today(target), beside(target)] if answer.attempt else [target]
    files = [*answer.report(out), *weights]
    learn = spelled("learn", data, options={"--no-labels": True, "--out": out / "learned" / WEIGHTS})
    return answer, files, str(learn)
