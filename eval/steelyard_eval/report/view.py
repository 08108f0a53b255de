"""The content of a report: rows of formatted text, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard_eval.layers import COLUMNS
from steelyard_eval.layers import rows as layer_rows
from steelyard_eval.layout import brief
from steelyard_eval.report import charts
from steelyard_eval.report.disagreements import Disagreement, disagreements
from steelyard_eval.report.method import facts, method
from steelyard_eval.report.recommendation import Recommendation, recommendation
from steelyard_eval.report.sentences import answer, caveat
from steelyard_eval.report.text import MISSING, clip, interval, number, p_value, system_name
from steelyard_eval.report.tuning import Tuning, tuning

Record = Mapping[str, Any]
Pairs = tuple[tuple[str, str], ...]
_COLOURS = {"better": "good", "worse": "bad"}


@dataclass(frozen=True)
class Cell:
    """A number and, where there is one, its interval."""

    text: str
    interval: str = ""


@dataclass(frozen=True)
class Row:
    """A configuration: metrics in the order of `Page.metrics`, verdict against the baseline, costs.

    `short` is the label of narrow columns.
    """

    label: str
    short: str
    system: str
    family: str
    cells: tuple[Cell, ...]
    verdict: str
    colour: str
    costs: tuple[str, ...]
    is_baseline: bool


@dataclass(frozen=True)
class ComparisonRow:
    """A challenger against a baseline; numbers in the order of the table's columns."""

    challenger: str
    baseline: str
    metric: str
    numbers: tuple[str, ...]
    verdict: str
    colour: str


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    description: str
    answer: str
    caveat: str
    facts: Pairs
    primary: str
    baseline: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    chart: charts.IntervalChart | None
    comparisons: tuple[ComparisonRow, ...]
    layer_columns: tuple[str, ...]
    layers: tuple[tuple[str, ...], ...]
    tuning: Tuning | None
    recommendation: Recommendation | None
    disagreements: tuple[Disagreement, ...]
    has_queries: bool
    strategies: Pairs
    method: Pairs
    notices: tuple[str, ...]
    hashes: Pairs


def page(results: Record, sha256: str) -> Page:
    """The page of checked results; `sha256` is that of the report.json beside it."""
    primary, baseline = results["primary"], results.get("baseline") or ""
    means = {r["label"]: r for r in _sorted(results) if r["metric"] == primary}
    tested = {
        c["challenger"]: c for c in results["comparisons"] if (c["metric"], c["baseline"]) == (primary, baseline)
    }
    rows = tuple(_rows(results, list(means), tested))
    tuned = tuning(results["tuning"]) if results.get("tuning") else None
    subject = "Search strategies" if rows or tuned is None else "Tuned weights"
    return Page(
        title=f"{subject} on {results['dataset']['name']}",
        description=results["dataset"].get("description") or "",
        answer=_answer(results, means, tested, tuned),
        caveat="" if results.get("sentence") else caveat(means, baseline),
        facts=facts(results),
        primary=primary,
        baseline=baseline,
        metrics=_metrics(results),
        rows=rows,
        chart=charts.interval_chart(list(means.values()), primary, baseline),
        comparisons=tuple(_comparison(c) for c in results["comparisons"]),
        layer_columns=tuple(COLUMNS.values()),
        layers=tuple(tuple(row[name] for name in COLUMNS) for row in layer_rows(results)),
        tuning=tuned,
        recommendation=recommendation(results) if results.get("promise") else None,
        disagreements=disagreements(results, [row.label for row in rows]),
        has_queries=bool(results.get("per_query")),
        strategies=tuple((c["label"], brief(c["strategy"])) for c in results["configurations"]),
        method=method(results),
        notices=tuple(results.get("notices", ())),
        hashes=(("data set", results["dataset"].get("sha256") or MISSING), ("report.json", sha256)),
    )


def _answer(
    results: Record, means: Mapping[str, Record], tested: Mapping[str, Record], tuned: Tuning | None
) -> str:
    """The sentence of a recommendation or a tuning, else which configuration is best."""
    if results.get("sentence"):
        return str(results["sentence"])
    if not results["configurations"] and tuned is not None:
        return tuned.sentence
    return answer(means, tested, results["primary"], results.get("baseline") or "")


def _sorted(results: Record) -> list[Record]:
    """Result records, best first; equal means by label."""
    records: list[Record] = results["results"]
    return sorted(records, key=lambda record: (-record["mean"], record["label"]))


def _metrics(results: Record) -> tuple[str, ...]:
    """Metrics as they first appear, the primary one in front."""
    names = dict.fromkeys(record["metric"] for record in results["results"])
    return tuple(sorted(names, key=lambda name: name != results["primary"]))


def _rows(results: Record, ranked: Sequence[str], tested: Mapping[str, Record]) -> list[Row]:
    """A row for each configuration, those without the primary metric last."""
    place = {label: index for index, label in enumerate(ranked)}
    values = {(record["label"], record["metric"]): record for record in results["results"]}
    timing = {record["label"]: record for record in results.get("timing", ())}
    found = sorted(results["configurations"], key=lambda c: place.get(c["label"], len(place)))
    return [_row(c, results, values, timing.get(c["label"], {}), tested.get(c["label"])) for c in found]


def _row(
    configuration: Record, results: Record, values: Mapping[Any, Record], timing: Record, tested: Record | None
) -> Row:
    label = configuration["label"]
    is_baseline = label == results.get("baseline")
    verdict = "baseline" if is_baseline else tested["verdict"] if tested else "not compared"
    return Row(
        label=label,
        short=clip(label, 32),
        system=system_name(configuration, apart_from=label),
        family=configuration.get("family") or MISSING,
        cells=tuple(_cell(values.get((label, metric))) for metric in _metrics(results)),
        verdict=verdict,
        colour=_COLOURS.get(verdict, ""),
        costs=(
            number(timing.get("p50_ms"), 2),
            number(timing.get("p95_ms"), 2),
            number(timing.get("embedding_calls"), 0),
        ),
        is_baseline=is_baseline,
    )


def _cell(record: Record | None) -> Cell:
    if record is None:
        return Cell(MISSING)
    return Cell(number(record["mean"]), interval(record.get("low"), record.get("high")))


def _comparison(record: Record) -> ComparisonRow:
    numbers = (
        f"{number(record['delta'], signed=True)} {interval(record.get('low'), record.get('high'))}".strip(),
        p_value(record.get("p")),
        p_value(record.get("p_holm")),
        " / ".join(number(record.get(key), 0) for key in ("wins", "ties", "losses")),
        number(record.get("mde")),
        number(record.get("queries_needed"), 0),
    )
    colour = _COLOURS.get(record["verdict"], "")
    return ComparisonRow(
        record["challenger"], record["baseline"], record["metric"], numbers, record["verdict"], colour
    )
