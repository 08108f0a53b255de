"""How far layered searches went: which step of the ladder found something, and how many stayed at each layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.grammar import number_text

LAST = -1
"""The step of a query whose first layer found nothing: all its details were searched."""

COUNTS = ("step", "directories", "refined", "entries", "found")
_NUMBERS = (*COUNTS, "threshold", "cut")


class ProgressSummary(TypedDict):
    """How far layered searches went: counts of queries, and the share of them that each layer let by."""

    queries: int
    hit_rates: Annotated[dict[str, float], ("required", ("l0", "l1", "l2"))]
    at_threshold: int
    relaxed: dict[str, int]
    full_search: int
    without_result: int


@dataclass(frozen=True)
class Progress:
    """Of Q queries, each int64[Q]."""

    step: Indices
    """0 where abstracts reached the threshold, 1, 2 ... where a step of the ladder did, `LAST` where none."""
    directories: Indices
    """Directories whose abstract passed."""
    refined: Indices
    """Those of them whose abstract or overview reached half the cut, all of them without a cut."""
    entries: Indices
    """Entries that were ranked by all layers."""
    found: Indices
    """Entries that were ranked, by all layers or, at `LAST`, by their details."""
    threshold: Floats
    """float64[Q]: what the abstracts reached at that step; NaN at `LAST`."""
    cut: Floats
    """float64[Q]: what scores have to reach; NaN where there is no cut."""
    asked: Bools
    """bool[Q]: the queries that a layered search answered at all."""

    def of(self, queries: Bools) -> Progress:
        """The same, where only these queries (bool[Q]) were asked."""
        return replace(self, asked=self.asked & queries)

    def counts(self, at: int = 0) -> dict[str, int]:
        """The counts of one query, for a log; `COUNTS` names them."""
        return {name: int(getattr(self, name)[at]) for name in COUNTS}

    @classmethod
    def of_counts(cls, rows: Sequence[Mapping[str, int]]) -> Progress:
        """The progress of many searches that a log holds the counts of; their thresholds are not known."""
        counts = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in COUNTS}
        unknown = np.full(len(rows), np.nan)
        return cls(**counts, threshold=unknown, cut=unknown, asked=np.ones(len(rows), dtype=bool))

    def emptied(self, at: int = 0) -> str:
        """Which step left a query without a result, in words; empty where entries were ranked."""
        if self.found[at] or not self.asked[at]:
            return ""
        cut, count = float(self.cut[at]), int(self.directories[at])
        if self.step[at] == LAST:
            left = "there are none in scope" if np.isnan(cut) else f"no score reaches {number_text(cut)}"
            return f"no abstract reaches any step of the ladder, and of all details {left}"
        passed = (
            f"{count} abstract{'s reach' if count > 1 else ' reaches'} {number_text(float(self.threshold[at]))}"
        )
        if not self.refined[at]:
            return f"{passed}, but no overview or abstract of these reaches {number_text(cut / 2)}"
        left = (
            "no entry is in scope"
            if np.isnan(cut)
            else f"no entry's score of all layers reaches {number_text(cut)}"
        )
        return f"{passed}, but {left}"

    def summary(self) -> ProgressSummary:
        """Counts of queries, and the share of them that came through each layer, as JSON values."""
        asked = int(self.asked.sum())
        step = self.step[self.asked]
        hits = {
            layer: float((counts[self.asked] > 0).sum()) / max(asked, 1)
            for layer, counts in (("l0", self.directories), ("l1", self.refined), ("l2", self.entries))
        }
        relaxed = {str(number): int((step == number).sum()) for number in sorted(set(step.tolist()) - {0, LAST})}
        return {
            "queries": asked,
            "hit_rates": hits,
            "at_threshold": int((step == 0).sum()),
            "relaxed": relaxed,
            "full_search": int((step == LAST).sum()),
            "without_result": int((self.found[self.asked] == 0).sum()),
        }


def progress_of_all(parts: Iterable[Progress | None]) -> Progress | None:
    """Of queries that different expressions answer; None where none of them is layered."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    first, *others = known
    for other in others:
        numbers = {name: np.where(other.asked, getattr(other, name), getattr(first, name)) for name in _NUMBERS}
        first = Progress(**numbers, asked=first.asked | other.asked)
    return first
