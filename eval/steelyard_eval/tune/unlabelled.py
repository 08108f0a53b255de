"""The answer of a data set without judgments: keep what is used, and label first where configurations disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard import __version__
from steelyard.memory.query import Query
from steelyard_eval.compare.agreement import Lists, agreement, in_words
from steelyard_eval.recording.replay import replay
from steelyard_eval.tune.families import Start
from steelyard_eval.tune.layout import record_all, serving
from steelyard_eval.tune.source import Source

Record = dict[str, Any]


def without_labels(source: Source, starts: Sequence[Start], queries: Sequence[Query], current: str) -> Record:
    """The document of a data set without judgments, over its presets and one strategy of each family."""
    found = agreement(_lists(source, queries, starts), queries)
    return {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "sentence": f"Keep your {current} for now: {in_words(found['disagreement'], len(queries))}.",
        "verdict": "keep",
        "labelled": 0,
        "current": {"label": current},
        "chosen": None,
        "leaderboard": [],
        "notices": list(source.dataset.notices),
        **found,
    }


def _lists(source: Source, queries: Sequence[Query], starts: Sequence[Start]) -> Lists:
    recordings = record_all(source, queries, starts)
    return {
        start.label: replay(serving(recordings, start.config).table, start.config).ranked.lists()
        for start in starts
    }
