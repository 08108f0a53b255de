"""What can be said without labels: how far configurations agree, where they do not, and what to label first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.query import Query
from steelyard_eval.recommend.families import Start
from steelyard_eval.recommend.layout import record_all, serving
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

Record = dict[str, Any]
DEPTH = 10
PERSISTENCE = 0.9
"""The probability that a reader goes on to the next place: 86% of the weight of RBO lies in the first ten."""
SHOWN = 10
"""Queries that are named as the first to label."""
FIRST = 40
"""Labelled queries that settle something, where configurations disagree."""


@dataclass(frozen=True)
class Agreement:
    """Of two configurations, means over queries: RBO and Jaccard@10, each from 0 (nothing shared) to 1."""

    one: str
    other: str
    rbo: float
    jaccard: float


def overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Jaccard's index of the first ten; 1 of two empty lists.

    >>> overlap(["a", "b"], ["b", "c"])
    0.3333333333333333
    """
    first, second = set(one[:DEPTH]), set(other[:DEPTH])
    return len(first & second) / len(first | second) if first | second else 1.0


def rank_biased(one: Sequence[str], other: Sequence[str], p: float = PERSISTENCE) -> float:
    """Rank-biased overlap of the first ten, extrapolated: Webber, Moffat and Zobel (TOIS 28, 2010), equation 30.

    >>> rank_biased(["a", "b"], ["a", "b"]), rank_biased(["a"], ["b"])
    (1.0, 0.0)
    """
    depth = min(DEPTH, max(len(one), len(other)))
    if depth == 0:
        return 1.0
    shared = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
    total = sum(value * p**d for d, value in enumerate(shared, start=1))
    return float(round(shared[-1] * p**depth + (1 - p) / p * total, 12))


def without_labels(space: Workspace, starts: Sequence[Start], queries: Sequence[Query], current: str) -> Record:
    """The document of a data set without judgments, over its presets and one strategy of each family."""
    lists = _lists(space, queries, starts)
    agreements = [_agreement(a, b, lists[a], lists[b]) for a, b in combinations(lists, 2)]
    spread = _disagreement(lists)
    order = np.argsort(-spread, kind="stable")[:SHOWN].tolist()
    first = [_to_label(queries[at], {label: own[at] for label, own in lists.items()}, spread[at]) for at in order]
    return {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "sentence": _sentence(current, len(queries), float(spread.mean())),
        "verdict": "keep",
        "labelled": 0,
        "current": {"label": current},
        "chosen": None,
        "leaderboard": [],
        "notices": list(space.dataset.notices),
        "agreement": [vars(one) for one in sorted(agreements, key=lambda one: (one.rbo, one.one, one.other))],
        "label_first": first,
    }


def _lists(space: Workspace, queries: Sequence[Query], starts: Sequence[Start]) -> dict[str, list[list[str]]]:
    """Label -> the first ten ids of every query."""
    recordings = record_all(space, queries, starts)
    found = {}
    for start in starts:
        run = replay(serving(recordings, start.config).table, start.config)
        ends, ids = run.ranking.offsets.tolist(), run.table.entries
        found[start.label] = [
            [ids[entry] for entry in run.entry[begin:end][:DEPTH].tolist()] for begin, end in pairwise(ends)
        ]
    return found


def _agreement(one: str, other: str, first: Sequence[list[str]], second: Sequence[list[str]]) -> Agreement:
    pairs = list(zip(first, second, strict=True))
    return Agreement(
        one,
        other,
        float(np.mean([rank_biased(a, b) for a, b in pairs])),
        float(np.mean([overlap(a, b) for a, b in pairs])),
    )


def _disagreement(lists: Mapping[str, Sequence[list[str]]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[Q]: 1 less the mean RBO over all pairs of configurations."""
    pairs = list(combinations(lists.values(), 2))
    return np.array([1 - np.mean([rank_biased(a[at], b[at]) for a, b in pairs]) for at in range(len(pairs[0][0]))])


def _to_label(query: Query, lists: Mapping[str, Sequence[str]], disagreement: float) -> Record:
    """A query with the entries that many but not all configurations find: their grades part them."""
    counts: dict[str, int] = {}
    for own in lists.values():
        for entry in own:
            counts[entry] = counts.get(entry, 0) + 1
    parting = sorted(counts, key=lambda entry: (-counts[entry] * (len(lists) - counts[entry]), entry.encode()))
    return {"id": query.id, "text": query.text, "disagreement": float(disagreement), "entries": parting[:DEPTH]}


def _sentence(current: str, queries: int, disagreement: float) -> str:
    count = min(FIRST, queries)
    return (
        f"Keep your {current} for now: without labels nothing can be said of quality, only that configurations "
        f"disagree on {disagreement:.0%} of the first ten by rank-biased overlap; judge about {count} queries, "
        f"those they disagree on first."
    )
