"""The same numbers as CSV, for spreadsheets; no text in it can start a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from steelyard.base.errors import visible
from steelyard_eval.result.structs import Result

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MEANS = ["label", "system", "profile", "strategy", "metric", "mean", "low", "high", "queries"]


def means_csv(result: Result) -> str:
    """A row for each contender and metric."""
    judged = result.provenance.data.judged
    rows = (
        [row.label, row.system, row.profile, row.strategy, metric, of.mean, of.low, of.high, judged]
        for row in result.rows
        for metric, of in row.means.items()
    )
    return _written(_MEANS, rows)


def queries_csv(result: Result) -> str:
    """A row for each query: id, category, text, and the first metric of every contender."""
    labels = sorted({label for query in result.queries for label in query.values})
    rows = ([query.id, query.category, query.text, *map(query.values.get, labels)] for query in result.queries)
    return _written(["id", "category", "text", *labels], rows)


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
