"""The answer of a data set without judgments: what public collections showed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from steelyard import __version__
from steelyard.memory.query import Query
from steelyard_eval.common.documents.results import AgreementPart, AgreementRecord, ChosenRecord, ResultsDocument
from steelyard_eval.compare.agreement import Lists, agreement
from steelyard_eval.decide.public import METRIC
from steelyard_eval.decide.without_labels import Advice
from steelyard_eval.decide.wording import depths_read, named
from steelyard_eval.recording.rankings import described
from steelyard_eval.recording.replay import replay
from steelyard_eval.tune.families import Start
from steelyard_eval.tune.layout import record_all, serving
from steelyard_eval.tune.source import Source

NOTHING: AgreementPart = {"agreement": [], "disagreement": None}


def without_labels(
    source: Source, starts: Sequence[Start], queries: Sequence[Query], label: str, advice: Advice, limit: int
) -> ResultsDocument:
    """The document of a data set without judgments, over its presets and one strategy of each family."""
    agreed = NOTHING
    if queries:
        table, disagreement = agreement(_lists(source, queries, starts))
        pairs = [cast(AgreementRecord, dict(zip(table.columns, row, strict=True))) for row in table.rows]
        agreed = {"agreement": pairs, "disagreement": disagreement}
    chosen: ChosenRecord | None = None
    if advice.attempt is not None:
        chosen = {
            "system": advice.attempt.system,
            "profile": advice.attempt.profile,
            "strategy": str(advice.attempt.effective),
            "depths": depths_read(advice.attempt),
        }
    record: ResultsDocument = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "verdict": advice.verdict,
        "public": advice.to_json(),
        "labelled": 0,
        "dataset": {**described(source.dataset), "judged": 0},
        "split": "all",
        "limit": limit,
        "model": source.model,
        "primary": METRIC,
        "configurations": [],
        "results": [],
        "comparisons": [],
        "current": {"label": label},
        "chosen": chosen,
        "leaderboard": [],
        "notices": list(source.dataset.notices),
    }
    answer = advice.answer(source.dataset, named(advice.attempt) if advice.attempt else "", source.model)
    return {**record, **answer.to_json(), **agreed}


def _lists(source: Source, queries: Sequence[Query], starts: Sequence[Start]) -> Lists:
    recordings = record_all(source, queries, starts)
    return {
        start.label: replay(serving(recordings, start.config).table, start.config).ranked.lists()
        for start in starts
    }
