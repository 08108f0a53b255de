"""The main job on the data set that comes with the package: compare, tune, report."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from steelyard_eval.compare import Comparison, compare
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.report import write_report
from steelyard_eval.tune import Tuning, tune

FAMILIES = {
    "weighted sum": "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)",
    "RRF": "rrf(bm25, vector, k=60)",
    "tiered": "tiered(fts, min_results=10, then=rrf(fts, vector, k=60))",
    "layered": "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
}
"""One plain strategy of each family, beside the systems."""


def starter() -> Path:
    """The folder of the starter data set: in the package, or beside it in a checkout."""
    inside = Path(str(resources.files("steelyard_eval").joinpath("starter")))
    return inside if inside.is_dir() else Path(__file__).parents[2] / "qrels" / "starter"


def demo(out: Path, dataset: Dataset | None = None) -> tuple[Comparison, Tuning, list[Path]]:
    """Compare families and systems, tune the weighted sum, write the report and the weights file.

    Returns both outcomes and the files written. The same data set gives the same bytes, apart from
    timings.
    """
    data = dataset or load(starter())
    space = Workspace.open(data)
    outcome = compare(data, labels=FAMILIES, workspace=space)
    tuned = tune(data, strategy=FAMILIES["weighted sum"], workspace=space)
    results: dict[str, Any] = {**outcome.to_json(), "tuning": tuned.to_json()}
    files = write_report(results, out)
    weights = out / "search-weights.json"
    tuned.config.save(weights)
    return outcome, tuned, [*files, weights]
