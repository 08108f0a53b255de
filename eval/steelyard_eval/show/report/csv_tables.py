"""The same numbers as CSV, for spreadsheets; no text in it can start a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from steelyard.base.errors import visible
from steelyard_eval.common.documents.results import ResultsDocument

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_RESULTS = ("label", "system", "profile", "strategy", "metric", "mean", "low", "high", "queries")


def leaderboard_csv(results: ResultsDocument) -> str:
    """A row for each configuration and metric."""
    return _written(_RESULTS, ([record.get(name) for name in _RESULTS] for record in results["results"]))


def queries_csv(results: ResultsDocument) -> str:
    """A row for each query: id, category, text, and the primary metric of every configuration."""
    rows = results.get("per_query", ())
    labels = sorted({label for query in rows for label in query["values"]})
    values = (
        [query["id"], query.get("category"), query.get("text"), *(query["values"].get(label) for label in labels)]
        for query in rows
    )
    return _written(["id", "category", "text", *labels], values)


def _written(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_cell(name) for name in head])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """A number as it is; a text on one line, behind an apostrophe where a spreadsheet would compute it."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
