"""The caveat of a report: what else may be as good as the best."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard_eval.common.documents.results import ResultRecord
from steelyard_eval.common.markup import listed
from steelyard_eval.measures.paired import TIE


def caveat(means: Mapping[str, ResultRecord], baseline: str) -> str:
    """List the other configurations that may be as good as the best; empty when there are none."""
    best = _best(means)
    if len(best) != 1 or best[0] == baseline:
        return ""
    floor = means[best[0]].get("low")
    rivals = [label for label in means if label not in (best[0], baseline) and _reaches(means[label], floor)]
    if not rivals:
        return ""
    its = "their intervals overlap" if len(rivals) == 1 else "their intervals overlap with its own"
    tested = "Only differences from the baseline were tested"
    return f"{tested}: no test separates {best[0]} from {listed(rivals)}; {its}."


def _best(means: Mapping[str, ResultRecord]) -> list[str]:
    """Labels that share the highest mean."""
    top = max((record["mean"] for record in means.values()), default=0.0)
    return [label for label, record in means.items() if record["mean"] >= top - TIE]


def _reaches(record: ResultRecord, floor: float | None) -> bool:
    high = record.get("high")
    return floor is not None and high is not None and high >= floor
