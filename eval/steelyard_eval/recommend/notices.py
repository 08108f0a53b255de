"""What a reader has to know before the table: too few queries, unjudged hits, queries that share a scope, LSA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.arrays import Floats
from steelyard.lsa import LsaEmbedder
from steelyard.query import Query
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recommend.board import Board
from steelyard_eval.recording.workspace import Workspace

FEW = 25
"""Judged queries below which hardly anything is told apart."""
UNJUDGED = 0.05
"""A difference in Judged@10 that can make a loser of a better list."""
JUDGED = Measure("Judged", 10)


def notices(space: Workspace, queries: Sequence[Query], board: Board) -> list[str]:
    """The warnings, most important first."""
    values = board.current.values[board.metric]
    return [*_few(len(queries)), *_shared(queries, values), *_unjudged(board), *_lsa(space)]


def _few(count: int) -> list[str]:
    if count >= FEW:
        return []
    return [f"{count} judged queries tell little apart: about {FEW} are the least that is worth it, 60 are better"]


def _shared(queries: Sequence[Query], values: Floats) -> list[str]:
    """Queries of one scope vary together: how many independent queries they are worth."""
    if any(query.group for query in queries):
        return []
    scopes = [str(query.filters) for query in queries]
    count = len(set(scopes))
    if count < 2 or count > len(queries) / 3:
        return []
    effective = effective_number(values, scopes)
    if effective > 0.9 * len(queries):
        return []
    return [
        f"the queries share {count} scopes, and those of one scope vary together: they are worth about "
        f"{effective:.0f} independent queries; give them `group` to have that counted"
    ]


def effective_number(values: Floats, groups: Sequence[str]) -> float:
    """N over the design effect: the variance of the mean over whole groups, beside that of independent queries.

    Kish, Survey Sampling (1965), 5.4; at most n.
    """
    n = len(values)
    _, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    alone = float(values.var(ddof=1)) / n
    away = np.bincount(code, values) - values.mean() * counts
    together = float((away**2).sum()) * len(counts) / (len(counts) - 1) / n**2
    return n * min(1.0, alone / together) if together > 0 else float(n)


def _unjudged(board: Board) -> list[str]:
    """Rows whose first ten hits are judged less often than the current configuration's."""
    if JUDGED not in board.current.values:
        return []
    base = float(board.current.values[JUDGED].mean())
    less = [one.label for one in board.places if float(one.values[JUDGED].mean()) < base - UNJUDGED]
    if not less:
        return []
    return [
        f"fewer of the first ten hits are judged than of {board.current.label} ({base:.0%}), and an unjudged hit "
        f"counts as a miss, so these may be better than they look: {', '.join(less)}"
    ]


def _lsa(space: Workspace) -> list[str]:
    if not isinstance(space.embedder, LsaEmbedder):
        return []
    return ["the vectors are LSA, fitted on these texts; a neural model may rank the strategies in another order"]
