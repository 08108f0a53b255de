"""What agents save to test a memory ranks low where nobody asks for it (EchoVault since c4348a6)."""

import re
from collections.abc import Sequence

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard.retrievers.kinds import BuildContext, Scorer, ScorerKind

FACTORS = {0.55: ("temporary", "probe", "diagnostic"), 0.75: ("test", "validation")}
"""What is multiplied for a word anywhere in the title, the category or the tags; the first counts."""
ASKED = frozenset("diagnostic diagnostics probe temporary test validation".split())  # noqa: SIM905 -- six words
"""Words of queries for which nothing is multiplied."""


def factor(text: str) -> float:
    """What a text in small letters multiplies by.

    >>> factor("the latest decision"), factor("test of a probe"), factor("decision")
    (0.75, 0.55, 1.0)
    """
    return next((value for value, words in FACTORS.items() if any(word in text for word in words)), 1.0)


def _build(parts: BuildContext) -> Scorer:
    def score(query: Query, ids: Sequence[str]) -> Floats:
        if not ASKED.isdisjoint(re.findall(r"\w+", query.keywords.lower())):
            return np.ones(len(ids))
        entries = parts.store.get(ids, ("title", "category", "tags"))
        found = {e.id: factor(" ".join((e.title, e.category, *e.tags)).lower()) for e in entries}
        return np.array([found.get(id_, 1.0) for id_ in ids], dtype=np.float64)

    return score


HOUSEKEEPING = ScorerKind(name="housekeeping", build=_build, ends=(0.0, 1.0))
