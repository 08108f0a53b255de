"""The result of a data set without judgments: what public collections showed, and how far configurations agree."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard import __version__
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import record_all, recording_for
from steelyard_eval.candidates.families import StartingPoint
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.answer import advised, for_target
from steelyard_eval.choose.public import METRIC
from steelyard_eval.choose.without_labels import Advice
from steelyard_eval.compare.tables import Lists, agreement
from steelyard_eval.recording.named import named
from steelyard_eval.recording.rankings import facts_of
from steelyard_eval.recording.replay import replay
from steelyard_eval.result.structs import Decision, Provenance, Result, Said
from steelyard_eval.result.structs import replace as changed


def without_labels(
    source: Source,
    starts: Sequence[StartingPoint],
    queries: Sequence[Query],
    label: str,
    advice: Advice,
    limit: int,
    target: str = "",
) -> Result:
    """The result of a data set without judgments, over its presets and one strategy of each family."""
    dataset = source.dataset
    answer = advised(advice, dataset, named(advice.attempt) if advice.attempt else "", source.model)
    if advice.attempt and target:
        answer = changed(answer, steps=for_target(answer.steps, target, advice.verdict))
    return Result(
        "recommend",
        answer,
        Provenance(
            f"steelyard {__version__}",
            facts_of(dataset, len(dataset.queries) - dataset.set_apart, 0),
            metrics=[METRIC],
            baseline=label,
            limit=limit,
            model=source.model,
        ),
        decision=Decision(advice.verdict, public=True),
        notices=[Said("told", {"text": text}) for text in dataset.notices],
        tables=[agreement(_lists(source, queries, starts))[0]] if queries else [],
    )


def _lists(source: Source, queries: Sequence[Query], starts: Sequence[StartingPoint]) -> Lists:
    recordings = record_all(source, queries, starts)
    return {
        start.label: replay(recording_for(recordings, start.config).table, start.config).ranked.lists()
        for start in starts
    }
