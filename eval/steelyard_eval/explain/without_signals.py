"""The view of one query by a contender that has lists only: ranks without an explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.fusion.plan import Explanation
from steelyard.memory.query import Query
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.explain.document import AboutView, RawSignal
from steelyard_eval.measures.runs import Ranked


@dataclass(frozen=True)
class ListView:
    """The list for one query: `scores` by id, best first, and the same list as `lists`."""

    contender: ListContender
    limit: int
    scores: Mapping[str, float]
    lists: Ranked

    @classmethod
    def of(cls, contender: ListContender, dataset: Dataset, query: Query, limit: int) -> ListView:
        """Ask the contender."""
        answers = contender.answers([query], limit, dataset)
        return cls(contender, limit, dict(answers.lists[0][:limit]), answers.ranked([query], limit))

    @property
    def listed(self) -> Mapping[str, int]:
        """The ranks by id."""
        return {id_: rank for rank, id_ in enumerate(self.scores, 1)}

    @property
    def ranked(self) -> Mapping[str, int]:
        """The ranks by id; nothing is known beyond the list."""
        return self.listed

    def fused(self, id_: str) -> Explanation | None:
        """Return None: the source of the score is not known."""
        return None

    finished = tree = fused

    def score(self, id_: str) -> float:
        """Return the score of a listed entry."""
        return self.scores[id_]

    def matching(self, id_: str) -> dict[str, list[str]]:
        """Return nothing: which words were sought is not known."""
        return {}

    def signals(self, id_: str) -> dict[str, RawSignal]:
        """Return no signals."""
        return {}

    def about(self) -> AboutView:
        """Describe the contender for the document."""
        return {
            "label": self.contender.label,
            "system": None,
            "profile": None,
            "strategy": self.contender.source,
            "limit": self.limit,
            "depths": {},
            "asked": [],
            "unasked": [],
            "intent": "",
            "matched": "",
            "finish": [],
        }
