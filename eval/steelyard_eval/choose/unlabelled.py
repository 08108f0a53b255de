"""The answer of a data set without judgments: what public collections showed."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard import __version__
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import record_all, recording_for
from steelyard_eval.candidates.families import StartingPoint
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.public import METRIC
from steelyard_eval.choose.without_labels import Advice
from steelyard_eval.common.documents.results import AgreementPart, ChosenRecord, ResultsDocument
from steelyard_eval.compare.agreement import Lists, agreement
from steelyard_eval.decide.wording import depths_read, named
from steelyard_eval.recording.rankings import described
from steelyard_eval.recording.replay import replay

NOTHING: AgreementPart = {"agreement": [], "disagreement": None}


def without_labels(
    source: Source,
    starts: Sequence[StartingPoint],
    queries: Sequence[Query],
    label: str,
    advice: Advice,
    limit: int,
) -> ResultsDocument:
    """The document of a data set without judgments, over its presets and one strategy of each family."""
    agreed = agreement(_lists(source, queries, starts)) if queries else NOTHING
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


def _lists(source: Source, queries: Sequence[Query], starts: Sequence[StartingPoint]) -> Lists:
    recordings = record_all(source, queries, starts)
    return {
        start.label: replay(recording_for(recordings, start.config).table, start.config).ranked.lists()
        for start in starts
    }
