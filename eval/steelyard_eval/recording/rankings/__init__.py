"""The ranked lists that a document keeps, so that a report can show what a query found and why."""

from steelyard_eval.recording.rankings.shown_lists import (
    ShownLists,
    described,
    headline,
    lists_of,
    opening,
    ordered,
    query_rows,
    rankings,
)
from steelyard_eval.recording.rankings.spelling import spelled

__all__ = [
    "ShownLists",
    "described",
    "headline",
    "lists_of",
    "opening",
    "ordered",
    "query_rows",
    "rankings",
    "spelled",
]
