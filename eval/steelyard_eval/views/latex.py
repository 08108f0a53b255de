"""Results as LaTeX tables, as papers on retrieval print them: the best bold, marks told in the caption."""

import re
from collections.abc import Iterator, Sequence

from steelyard.base.errors import ConfigError
from steelyard_eval.common.formatting import interval, number, tex
from steelyard_eval.result.sentences import heading
from steelyard_eval.result.structs import Estimate, Fact, Result, Row

MARKS = {
    "better": r"$^{\blacktriangle}$",
    "worse": r"$^{\blacktriangledown}$",
    "chosen": r"$^{\star}$",
    "tuned": r"$^{\dagger}$",
}
UNNAMED = {"RecallAll@10", "Judged@10"}
"""Of the metrics that are measured where none are named, those that a paper would have to explain."""


def render(result: Result) -> str:
    r"""A table of the means of a comparison or a recommendation; it needs the packages booktabs and amssymb.

    The baseline stands first; a triangle marks what is significantly better or worse than it by the test of the
    result (paired, two-sided, Holm's correction), on the metric that was tested. A star marks what a
    recommendation chose, a dagger what was tuned on these queries. The label of the table is ``tab:``, the name of
    the data set's folder, and the kind of the result. By default without RecallAll@10 and Judged@10.
    """
    about, primary = result.provenance, result.metric
    rows = sorted(
        (row for row in result.rows if primary in row.means),
        key=lambda row: (row.label != about.baseline, -row.means[primary].mean, row.label),
    )
    if not rows:
        raise ConfigError("a LaTeX table of means needs labels; name a .json or .parquet file")
    metrics = about.named or [name for name in about.metrics if name == primary or name not in UNNAMED]
    best = {metric: _best(rows, metric) for metric in metrics}
    label = f"tab:{re.sub('[^A-Za-z0-9]+', '-', about.data.called).strip('-') or 'results'}-{result.kind}"
    lines = ["% " + heading("latex_needs", {"label": label}), r"\begin{table}", r"\centering"]
    lines += [r"\caption{" + "\n".join(_caption(result, rows)) + "}", r"\label{" + label + "}"]
    lines += [r"\begin{tabular}{l" + "c" * len(metrics) + "}", r"\toprule"]
    lines += [" & ".join([heading("latex_system"), *map(tex, metrics)]) + r" \\", r"\midrule"]
    for row in rows:
        cells = [_cell(row.means.get(metric), best[metric]) for metric in metrics]
        if row.against and primary in metrics:
            cells[metrics.index(primary)] += MARKS.get(row.against.verdict, "")
        lines.append(f"{_name(result, row)} & {' & '.join(cells)} \\\\")
        lines += [r"\midrule"] if row.label == about.baseline and len(rows) > 1 else []
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _caption(result: Result, rows: Sequence[Row]) -> Iterator[str]:
    about, tested = result.provenance, [row.against for row in rows if row.against]
    facts: dict[str, Fact] = {
        "queries": about.data.judged,
        "data": tex(about.data.called),
        "limit": about.limit,
        "baseline": tex(about.baseline),
        "metric": tex(result.metric),
        **MARKS,
    }
    yield heading("latex_means", facts)
    if tested:
        marked = any(test.verdict in MARKS for test in tested)
        yield heading("latex_marks" if marked else "latex_no_marks", facts)
        yield heading("latex_test")
    choice = result.decision and result.decision.chosen
    if result.decision and any(row.label == choice for row in rows):
        gain = result.decision.gain if result.decision.chosen else None
        around = interval(gain.low, gain.high, signed=True).replace("-", "$-$") if gain else ""
        value = f"${number(gain.mean, signed=True)}$" if gain else None
        yield heading("latex_chosen", {**facts, "gain": value, "around": around or None})
    if any(row.tuned for row in rows):
        yield heading("latex_tuned", facts)


def _name(result: Result, row: Row) -> str:
    """The label with its marks; what a line before would take for its own begins behind a group."""
    chosen = result.decision is not None and row.label == result.decision.chosen
    marks = (MARKS["chosen"] if chosen else "") + (MARKS["tuned"] if row.tuned else "")
    label = tex(row.label)
    return f"{'{}' if label.startswith(('[', '*')) else ''}{label}{marks}"


def _best(rows: Sequence[Row], metric: str) -> tuple[str, str]:
    """The best and, of three or more, the second best value as printed, so that equal numbers look equal."""
    values = [row.means[metric].mean for row in rows if metric in row.means]
    if metric.startswith("Judged@"):  # coverage of labels is no quality
        return "", ""
    shown = sorted({number(value) for value in values}, key=float, reverse=True)
    best, second, *_ = (*shown, "", "")
    return best, second if len(values) > 2 else ""


def _cell(value: Estimate | None, best: tuple[str, str]) -> str:
    if value is None:
        return "--"
    shown = number(value.mean)
    return rf"\textbf{{{shown}}}" if shown == best[0] else rf"\underline{{{shown}}}" if shown == best[1] else shown
