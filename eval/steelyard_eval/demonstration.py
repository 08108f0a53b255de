"""The main job on the data set that comes with the package: recommend, report, write the weights."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from steelyard_eval.datasets import Dataset, load
from steelyard_eval.recommend.answer import Recommendation, recommend


def starter() -> Path:
    """The folder of the starter data set: in the package, or beside it in a checkout."""
    inside = Path(str(resources.files("steelyard_eval").joinpath("starter")))
    return inside if inside.is_dir() else Path(__file__).parents[2] / "qrels" / "starter"


def demo(out: Path, dataset: Dataset | None = None) -> tuple[Recommendation, list[Path]]:
    """Recommend a strategy and weights, write the report and the weights file.

    Returns the recommendation and the files written. The same data set gives the same bytes, apart from timings.
    """
    found = recommend(dataset or load(starter()))
    return found, [*found.report(out), *found.save_weights(out / "search-weights.json")]
