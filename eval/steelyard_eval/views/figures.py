"""Which figures a result has, by name; the report shows the same ones."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard_eval.common.formatting import TOO_FEW_QUERIES, interval, number
from steelyard_eval.common.tabular import Figure
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.measures.spread import ALPHA, normal_interval
from steelyard_eval.result.sentences import VERDICTS, heading
from steelyard_eval.result.structs import Estimate, Result, Row, Table
from steelyard_eval.views.drawing import plots
from steelyard_eval.views.drawing.plots import Span, spans
from steelyard_eval.views.sheets import facts_of, leading, ranked, triple

Figures = dict[str, Callable[[], Figure]]


def figures(result: Result, metric: str = "") -> Figures:
    """The figures of a result, by name; `metric` is that of the means, by default the one that was tested."""
    made: Figures = {}
    base = next((row for row in result.rows if row.label == result.provenance.baseline), None)
    if result.decision and result.decision.gain and base and result.metric in base.means:
        made["answer"] = partial(answer, result)
    if any(row.means for row in result.rows):
        made["means"] = partial(means, result, metric or result.metric)
    if any(_gain(row) for row in result.rows):
        made["differences"] = partial(differences, result)
    if sides := two_sides(result):
        made["queries"] = partial(queries, result, sides)
    drawn = {"categories": categories, "curve": curve, "gated": gated}
    drawn |= {"gains": gains, "places": places, "follows": follows}
    tables = (one for one in result.tables if one.key in drawn and (one.key != "categories" or tested(one)))
    return made | {table.key: partial(drawn[table.key], result, table) for table in tables}


def draw(result: Result, what: str, metric: str = "") -> Figure:
    """The figure of this name; ConfigError with the known ones."""
    known = figures(result, metric)
    if not known:
        raise ConfigError(f"{result.provenance.data.called} has no labels to plot; label some queries")
    if what not in known:
        raise ConfigError(f"there is no figure {quote(what)} of this{nearest(what, known)}; {', '.join(known)}")
    return known[what]()


def means(result: Result, metric: str) -> Figure:
    """Means with their intervals, best first; the line is at the baseline."""
    baseline, choice = result.provenance.baseline, _chosen(result)
    values = [(row.label, row.means[metric]) for row in result.rows if metric in row.means]
    rows = [
        Span(label, value.mean, value.low, value.high, number(value.mean),
             "choice" if label == choice else "hollow" if label == baseline else "filled")
        for label, value in sorted(values, key=lambda pair: (-pair[1].mean, pair[0]))
    ]  # fmt: skip
    mark = next((row.value for row in rows if row.label == baseline), None)
    return spans(rows, heading("axis_means", {"metric": metric}), mark, "baseline")


def difference(gain: Estimate, label: str, look: str, verdict: str = "") -> Span:
    """The row of a difference, with what was decided in words."""
    value, around = number(gain.mean, signed=True), interval(gain.low, gain.high, signed=True)
    brief = f"{value} {verdict}".strip()
    told = brief if around == TOO_FEW_QUERIES else " ".join(filter(None, (value, around, verdict)))
    return Span(label, gain.mean, gain.low, gain.high, told, look, brief)


def difference_rows(result: Result, rows: Sequence[Row]) -> list[Span]:
    """Every contender that was tested, or tuned here, by its difference from the baseline."""
    choice, made = _chosen(result), []
    for row in rows:
        if (gain := _gain(row)) is None:
            continue
        told = row.against.verdict if row.against else ""
        look = "choice" if row.label == choice else "filled" if told in ("better", "worse") else "hollow"
        made.append(difference(gain, row.label, look, VERDICTS.get(told, "")))
    return sorted(made, key=lambda row: (-row.value, row.label))


def differences(result: Result, short: bool = False) -> Figure:
    """The forest of the differences to the baseline."""
    rows = difference_rows(result, leading(result) if short else result.rows)
    return spans(rows, heading("axis_difference", facts_of(result)), 0.0, result.provenance.baseline, MARGIN)


def answer(result: Result) -> Figure:
    """Today and the choice on one axis: its mean here, and what is expected of the choice on new queries.

    Without a choice the best other contender, as it is on these queries.
    """
    base, decision = result.provenance.baseline, result.decision
    before = result.row(base).means[result.metric]
    rows = [_mean_of(heading("word_today", {"current": base}), before, "hollow")]
    if decision and decision.gain and decision.chosen:
        after = shifted(decision.gain, before.mean)
        rows.append(_mean_of(heading("word_choice"), after, "choice"))
    else:
        others = [row for row in ranked(result) if row.label != base and result.metric in row.means]
        rows += [_mean_of(row.label, row.means[result.metric], "filled") for row in others[:1]]
    return spans(rows, heading("axis_means", {"metric": result.metric}), before.mean)


def _mean_of(label: str, value: Estimate, look: str) -> Span:
    return Span(label, value.mean, value.low, value.high, triple(value), look, number(value.mean))


def shifted(gain: Estimate, before: float) -> Estimate:
    """A metric that gains as much, within its range of 0 to 1."""
    mean, *ends = (
        None if value is None else min(max(before + value, 0.0), 1.0) for value in (gain.mean, gain.low, gain.high)
    )
    return Estimate(mean or 0.0, *ends)


def two_sides(result: Result) -> tuple[str, str] | None:
    """What is used today and what is proposed instead, or the best others; None without values of two by query."""
    measured = dict.fromkeys(label for query in result.queries for label in query.values)
    choice = result.choice
    first = [result.provenance.baseline, *([choice.label] if choice else [])]
    order = [
        label for label in dict.fromkeys([*first, *(row.label for row in ranked(result))]) if label in measured
    ]
    return (order[0], order[1]) if len(order) > 1 else None


def queries(result: Result, sides: tuple[str, str]) -> Figure:
    """The difference of two contenders on every query."""
    left, right = sides
    values = [(query.values.get(left), query.values.get(right)) for query in result.queries]
    gaps = [after - before for before, after in values if before is not None and after is not None]
    return plots.query_differences(gaps, heading("axis_sides", {**facts_of(result), "left": left, "right": right}))


def tested(table: Table) -> list[Span]:
    """The categories that have enough queries, the largest difference first; filled: p below 0.05."""
    rows = []
    for cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        gain, p = row["difference"], row["p_by_category"]
        if isinstance(gain, Estimate) and isinstance(p, float):
            rows.append(
                difference(gain, f"{row['category']} ({row['queries']})", "filled" if p < ALPHA else "hollow")
            )
    return rows


def categories(result: Result, table: Table) -> Figure:
    """The difference in every category of `tested`."""
    axis = heading("axis_difference", facts_of(result))
    return spans(tested(table), axis, 0.0, str(table.facts["left"]), MARGIN)


def curve(result: Result, table: Table) -> Figure:
    """The metric along one weight: a step has its ends and its value; the facts say of which signal it is."""
    points = [dict(zip(table.columns, cells, strict=True)) for cells in table.rows]
    facts = table.facts
    return plots.curve(points, result.metric, facts, [facts.get("plateau_low"), facts.get("plateau_high")])


def gated(result: Result, table: Table) -> Figure:
    """The change of every contender since the baseline, and since the anchor where that is an older one."""
    looks, rows = {"pass": "filled", "fail": "cross"}, []
    seen: dict[str, Estimate] = {}
    for row in result.table("gate_rule"):
        label, change, verdict = str(row["contender"]), row["change"], str(row["verdict"])
        if isinstance(change, Estimate) and seen.setdefault(label, change) is change:
            rows.append(difference(change, label, looks.get(verdict, "hollow"), verdict))
        elif isinstance(change, Estimate) and change != seen[label]:
            rows.append(difference(change, f"{label}, {row['side']}", looks.get(verdict, "hollow"), verdict))
    return spans(rows, heading("axis_change"), 0.0, heading("before"), dashed=-float(str(table.facts["drop"])))


def gains(result: Result, table: Table) -> Figure:
    """What labels and acts say that a candidate gains, with two errors on either side."""
    rows = []
    for row in result.table(table.key):
        label = f"{heading(str(row['by']))} ({row['queries']})" if row["queries"] else heading("unseen_at", row)
        error = math.hypot(float(str(row["error"])), float(str(row.get("refit") or 0.0)))
        around = normal_interval(float(str(row["gain_by"])), error).shown(-1.0)
        rows.append(difference(around, label, "filled"))
    return spans(rows, heading("axis_gain", facts_of(result)), 0.0, heading("word_current"))


def places(result: Result, table: Table) -> Figure:
    """Acts per show by place, of relevant entries and of others."""
    columns = zip(*table.rows, strict=True)
    series = {
        heading(name): [float(str(value)) for value in of] for name, of in zip(table.columns, columns, strict=True)
    }
    series.pop(heading("place"))
    return plots.places(series, heading("axis_place"), heading("axis_acts"))


def follows(result: Result, table: Table) -> Figure:
    """How much the label and each signal raise the chance of an act, given the place."""
    rows = [
        Span(str(label), odds.mean, odds.low, odds.high, triple(odds, signed=True))
        for label, odds in table.rows
        if isinstance(odds, Estimate)
    ]
    return spans(rows, heading("axis_odds"), 0.0, heading("word_nothing"))


def _gain(row: Row) -> Estimate | None:
    return row.against.gain if row.against else row.gain


def _chosen(result: Result) -> str:
    return (result.decision.chosen or "") if result.decision else ""
