"""The ranked lists that a document keeps, so that a report can show what a query found and why."""

from steelyard_eval.recording.rankings.shown_lists import (
    DatasetRecord,
    ShownLists,
    described,
    facts_of,
    headline,
    lists_of,
    opening,
    ordered,
    rows_by_query,
)
from steelyard_eval.recording.rankings.spelling import spelled, words_of

__all__ = [
    "DatasetRecord",
    "ShownLists",
    "described",
    "facts_of",
    "headline",
    "lists_of",
    "opening",
    "ordered",
    "rows_by_query",
    "spelled",
    "words_of",
]
