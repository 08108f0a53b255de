"""A result as pandas frames: numbers, not texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steelyard_eval.result.structs import Cell, Estimate, Result, Row, Table

if TYPE_CHECKING:
    import pandas as pd


def means(result: Result) -> pd.DataFrame:
    """A row for each contender and metric, with the ends of its interval; without means the first table."""
    import pandas as pd

    rows = [
        {**_about(row), "metric": metric, **_ends(value), "queries": result.provenance.data.judged}
        for row in result.rows
        for metric, value in row.means.items()
    ]
    if rows or not result.tables:
        return pd.DataFrame(rows)
    return table(result.tables[0])


def leaderboard(result: Result) -> pd.DataFrame:
    """A row for each contender of a decision: its mean, its gain over today's, what it embeds."""
    import pandas as pd

    return pd.DataFrame(
        [
            {**_about(row), **_ends(row.means[result.metric]), "tuned": row.tuned, "embedded": row.cost.embedded,
             **_ends(row.against.gain if row.against else row.gain, "gain")}
            for row in result.rows
            if result.metric in row.means
        ]
    )  # fmt: skip


def tests(result: Result) -> pd.DataFrame:
    """A row for each contender that was tested: its difference from the baseline, interval, p, wins, verdict."""
    import pandas as pd

    rows = [
        {
            "challenger": row.label,
            **_ends(test.gain, "delta"),
            **{name: getattr(test, name) for name in ("verdict", "p", "p_holm", "wins", "ties", "losses")},
            **{name: getattr(test, name) for name in ("worse", "detectable", "needed")},
        }
        for row in result.rows
        if (test := row.against)
    ]
    frame = pd.DataFrame(rows)
    return frame.astype({"needed": "Int64"}) if rows else frame


def experiment(result: Result) -> pd.DataFrame:
    """A row for each contender and a column for each metric, as PyTerrier's Experiment has them.

    Beside them are queries won and lost against the baseline by the first metric, and the corrected p-value.
    """
    import pandas as pd

    rows = []
    for row in result.rows:
        test = row.against
        signs = {"+": test and test.wins, "-": test and test.losses, "p-value": test and test.p_holm}
        values = {metric: value.mean for metric, value in row.means.items()}
        rows.append(
            {"name": row.label, **values, **{f"{result.metric} {sign}": one for sign, one in signs.items()}}
        )
    return pd.DataFrame(rows).set_index("name")


def per_query(result: Result) -> pd.DataFrame:
    """A row for each query: its text, its category, and the first metric of every contender."""
    import pandas as pd

    rows = [
        {"id": query.id, "text": query.text, "category": query.category, **query.values}
        for query in result.queries
    ]
    return pd.DataFrame(rows, columns=["id", "text", "category", *_labels(result)]).set_index("id")


def table(of: Table) -> pd.DataFrame:
    """A further table; an interval is three columns."""
    import pandas as pd

    return pd.DataFrame([_cells(of.columns, row) for row in of.rows])


def _cells(columns: Sequence[str], row: Sequence[Cell]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, cell in zip(columns, row, strict=True):
        made |= _ends(cell, name) if isinstance(cell, Estimate) else {name: cell}
    return made


def _labels(result: Result) -> list[str]:
    return list(dict.fromkeys(label for query in result.queries for label in query.values))


def _about(row: Row) -> dict[str, str | None]:
    return {name: getattr(row, name) for name in ("label", "system", "profile", "strategy", "family")}


def _ends(value: Estimate | None, name: str = "mean") -> dict[str, float | None]:
    """A value and its ends; those of the mean of a contender, or of a difference, are plainly low and high."""
    lead = "" if name in ("mean", "delta") else f"{name}_"
    if value is None:
        return {name: None, f"{lead}low": None, f"{lead}high": None}
    return {name: value.mean, f"{lead}low": value.low, f"{lead}high": value.high}
