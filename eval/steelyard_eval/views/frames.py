"""The answer of a job in Python: its document, frames, figures, pages and files, all of one `Result`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, quote, visible
from steelyard_eval.common.tabular import Figure, Frame, Tabular, as_frame
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.result import document
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Estimate, Result, Row, Table
from steelyard_eval.views import latex, terminal

Values = Mapping[str, Mapping[str, Floats]]  # label -> metric -> float64[Q]


@dataclass(frozen=True, repr=False)
class Answered(Tabular):
    """What a job answers; `values` has every metric of every query: label -> metric -> float64[Q]."""

    result: Result
    values: Values = field(default_factory=dict)
    ceiling: Callable[[Result, Values], Result] | None = field(default=None, kw_only=True, compare=False)
    """What adds a learned model's row, which takes seconds; None where there is none to add."""

    def with_ceiling(self) -> Self:
        """The same answer with the row of a learned model, out of fold; pages and notebooks show that one."""
        return self if self.ceiling is None else replace(self, result=self._under_ceiling, ceiling=None)

    @cached_property
    def _under_ceiling(self) -> Result:
        return self.result if self.ceiling is None else self.ceiling(self.result, self.values)

    @property
    def sentence(self) -> str:
        """What was found, in one line."""
        return say(self.result.answer)

    @property
    def verdict(self) -> str:
        """ship, try or keep; of a gate pass, fail, inconclusive or mismatch; empty of a comparison."""
        return self.result.verdict

    @property
    def notices(self) -> tuple[str, ...]:
        """What to know before the numbers are read, such as ids that no entry has."""
        return tuple(map(say, self.result.notices))

    @property
    def queries(self) -> tuple[str, ...]:
        """The ids of the queries that were measured."""
        return tuple(query.id for query in self.result.queries)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The JSON document of the command line, as plain values."""
        made: dict[str, Any] = json.loads(document.render(self.result))
        return made

    def to_json(self) -> dict[str, Any]:
        """Return the document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> Frame:
        """Return a row for each contender and metric, with the mean and its interval.

        Without judgments: a row for each pair of contenders, with RBO.
        """
        result = self.result
        rows = [
            {**_about(row), "metric": metric, **_ends(value), "queries": result.provenance.data.judged}
            for row in result.rows
            for metric, value in row.means.items()
        ]
        return frame_of(result.tables[0]) if result.tables and not rows else as_frame(rows)

    def tests(self) -> Frame:
        """Return a row for each challenger: its difference from the baseline, interval, p, wins, verdict."""
        kept = ("verdict", "p", "p_holm", "wins", "ties", "losses", "worse", "detectable", "needed")
        rows = [
            {"challenger": row.label, **_ends(test.gain, "delta"), **{name: getattr(test, name) for name in kept}}
            for row in self.result.rows
            if (test := row.against)
        ]
        frame = as_frame(rows)
        return frame.astype({"needed": "Int64"}) if rows else frame

    def table(self, round: int | None = None) -> Frame:  # noqa: A002 -- the name that PyTerrier and pandas give it
        """Return a row for each contender and a column for each metric, as PyTerrier's Experiment does.

        Beside them are queries won and lost against the baseline on the primary metric, and the corrected p-value.
        `round` is the number of decimals.
        """
        rows = []
        for row in self.result.rows:
            test = row.against
            signs = {"+": test and test.wins, "-": test and test.losses, "p-value": test and test.p_holm}
            values: dict[str, Any] = {metric: value.mean for metric, value in row.means.items()}
            values |= {f"{self.result.metric} {sign}": one for sign, one in signs.items()}
            rows.append({"name": row.label, **values})
        frame = as_frame(rows).set_index("name")
        return frame if round is None else frame.round(round)

    def per_query(self, metric: str | None = None, round: int | None = None) -> Frame:  # noqa: A002 -- as above
        """Return a row for each query: text, category, and one metric (the primary one) of every contender."""
        wanted, queries = self._measured(metric), self.result.queries
        labels = dict.fromkeys(label for query in queries for label in query.values)
        rows = [
            {"id": query.id, "text": query.text, "category": query.category, **query.values} for query in queries
        ]
        frame = as_frame(rows, columns=["id", "text", "category", *labels]).set_index("id")
        if self.values:
            frame = frame[["text", "category"]].assign(**{label: of[wanted] for label, of in self.values.items()})
        return frame if round is None else frame.round(round)

    def plot(self, name: str | None = None, *, what: str = "") -> Figure:
        """Plot a figure of the result.

        Parameters
        ----------
        name: A figure, as `what`, or the metric whose means are shown; the primary one by default.
        what: means (with intervals), differences (to the baseline), queries (the difference on each), categories,
            and what else the result has, such as curve of recommend. All but means are of the primary metric. By
            default what answers: the decision, else the means.
        """
        from steelyard_eval.views.figures import draw, figures  # which a terminal does not draw

        if name in figures(self.result, ""):
            return draw(self.result, str(name))
        usual = "means" if name or not self.result.decision else "answer"
        return draw(self.result, what or usual, self._measured(name) if name else "")

    def report(self, path: str | Path) -> list[Path]:
        """Write the report (HTML, Markdown, JSON) here; returns the paths."""
        from steelyard_eval.views.report import write

        return write(self._under_ceiling, path)

    def to_latex(self) -> str:
        """Return the means as papers on retrieval print them: the best bold, marks where the test decided."""
        return latex.render(self.result)

    def _document(self) -> str:
        return document.render(self.result)

    def _measured(self, metric: str | None) -> str:
        """A metric as it is written, by default the primary one; ConfigError for one that has no values here."""
        known = self.result.provenance.metrics
        wanted = str(parse_measures([metric or self.result.metric])[0])
        if wanted not in known:
            raise ConfigError(f"metric {quote(wanted)} was not compared{nearest(wanted, known)}")
        return wanted

    def __repr__(self) -> str:
        return visible(f"{type(self).__name__}({self.sentence})")

    def __str__(self) -> str:
        return terminal.render(self.result)

    def _repr_html_(self) -> str:
        from steelyard_eval.views.report.write import piece  # its templates take long to load

        return piece(self._under_ceiling)


EXIT_CODES = {"pass": 0, "fail": 1, "mismatch": 2, "inconclusive": 0}
STRICT_EXIT_CODE = 3


@dataclass(frozen=True, repr=False)
class Gating(Answered):
    """The result of a gate; docs/gate-rules.md describes its document."""

    def exit_code(self, strict: bool = False) -> int:
        """0 fine, 1 search got worse, 2 mismatch, 3 inconclusive where that counts as a failure."""
        return STRICT_EXIT_CODE if strict and self.verdict == "inconclusive" else EXIT_CODES[self.verdict]

    def to_frame(self) -> Frame:
        """Return a row for each contender: its verdict, the change of nDCG@10, and what the rule saw."""
        seen = {row["contender"]: row for row in self.result.table("gate_rule") if row["side"] == "baseline"}
        checks = {row["contender"]: row["check"] for row in self.result.table("gate_check")}
        found = {one.contender: say(one) for one in reversed(self.result.findings)}
        rows = [
            {
                "label": row["contender"],
                "verdict": row["verdict"],
                **(_ends(row["change"], "delta") if isinstance(row["change"], Estimate) else {}),
                "p_worse": seen[row["contender"]]["p_worse"],
                "top10_changed": row["top10_changed"],
                "check": checks[row["contender"]],
                "finding": found[str(row["contender"])],
            }
            for row in self.result.table("gated")
        ]
        columns = ["label", "verdict", "delta", "low", "high", "p_worse", "top10_changed", "check", "finding"]
        return as_frame(rows, columns=columns)

    def plot(self, metric: str | None = None, *, what: str = "gated") -> Figure:
        """Plot the change of nDCG@10 of every contender with its interval, beside the budget."""
        return super().plot(metric, what=what)

    def worst(self, label: str | None = None) -> Frame:
        """Return the queries that lost most, of one contender or of all."""
        rows = [row for row in self.result.table("lost") if label in (None, row["contender"])]
        return as_frame(rows, columns=["contender", "query", "text", "before", "now"])


def board_frame(result: Result) -> Frame:
    """A row for each contender of a decision: its mean, its gain over today's, what it embeds."""
    return as_frame(
        [
            {**_about(row), **_ends(row.means[result.metric]), "tuned": row.tuned, "embedded": row.cost.embedded,
             **_ends(row.against.gain if row.against else row.gain, "gain")}
            for row in result.rows
            if result.metric in row.means
        ]
    )  # fmt: skip


def frame_of(table: Table) -> Frame:
    """A further table; an interval is three columns."""
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        rows.append({})
        for name, cell in zip(table.columns, row, strict=True):
            rows[-1] |= _ends(cell, name) if isinstance(cell, Estimate) else {name: cell}
    return as_frame(rows)


def _about(row: Row) -> dict[str, str | None]:
    return {name: getattr(row, name) for name in ("label", "system", "profile", "strategy", "family")}


def _ends(value: Estimate | None, name: str = "mean") -> dict[str, float | None]:
    """A value and its ends; those of the mean of a contender, or of a difference, are plainly low and high."""
    lead = "" if name in ("mean", "delta") else f"{name}_"
    if value is None:
        return {name: None, f"{lead}low": None, f"{lead}high": None}
    return {name: value.mean, f"{lead}low": value.low, f"{lead}high": value.high}
