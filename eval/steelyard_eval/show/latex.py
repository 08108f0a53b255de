"""A comparison as a LaTeX table, as papers print it: booktabs, the best bold, the second underlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.base.errors import ConfigError
from steelyard_eval.common.markup import legible
from steelyard_eval.measures.statistics import ALPHA

Record = Mapping[str, Any]
_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_SIGNS = {"better": r"$^{\blacktriangle}$", "worse": r"$^{\blacktriangledown}$"}


def latex(record: Record) -> str:
    r"""A table of the means of a comparison or a recommendation; it needs the packages booktabs and amssymb.

    The baseline stands first; a triangle marks what is significantly better or worse than it by the test of the
    document (paired, two-sided, Holm's correction), on the metric that was tested.
    """
    if not record.get("results"):
        raise ConfigError("there are no means of contenders in this result, so there is no table of them")
    metrics = list(dict.fromkeys(row["metric"] for row in record["results"]))
    values = {(row["label"], row["metric"]): row["mean"] for row in record["results"]}
    primary, baseline = record["primary"], record.get("baseline")
    tested = {(one["challenger"], one["metric"]): one["verdict"] for one in record["comparisons"]}
    labels = sorted(
        (one["label"] for one in record["configurations"] if (one["label"], primary) in values),
        key=lambda label: (label != baseline, -values[label, primary], label),
    )
    marks = {metric: _marks([values[label, metric] for label in labels if (label, metric) in values])
             if not metric.startswith("Judged@") else ("", "")  # coverage of labels is no quality
             for metric in metrics}  # fmt: skip
    rows = []
    for label in labels:
        cells = [
            _cell(values.get((label, m)), marks[m]) + _SIGNS.get(tested.get((label, m), ""), "") for m in metrics
        ]
        start = "{}" if label.startswith(("[", "*")) else ""  # both would belong to the line before
        rows.append(f"{start}{escaped(label)} & {' & '.join(cells)} \\\\")
        rows += [r"\midrule"] if label == baseline and len(labels) > 1 else []
    queries = record["results"][0].get("queries") or "the"
    caption = [
        f"Means over {queries} queries of {escaped(record['dataset']['name'])}, lists of {record['limit']}.",
        "Best in bold, second best underlined.",
    ]
    if tested:
        caption += [
            r"$^{\blacktriangle}$ ($^{\blacktriangledown}$): better (worse) than "
            f"{escaped(str(baseline))} in {escaped(primary)},",
            f"two-sided paired randomisation test, $p < {ALPHA}$ after Holm's correction.",
        ]
    head = " & ".join(escaped(metric) for metric in metrics)
    nl = "\n"
    lines = (
        r"% \usepackage{booktabs,amssymb}", r"\begin{table}", r"\centering", rf"\caption{{{nl.join(caption)}}}",
        rf"\begin{{tabular}}{{l{'c' * len(metrics)}}}", r"\toprule", rf"System & {head} \\", r"\midrule", *rows,
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    )  # fmt: skip
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> print(escaped("0.3*bm25 & min_results"))
    0.3*bm25 \& min\_results
    """
    return "".join(_ESCAPED.get(character, character) for character in legible(text))


def _marks(values: Sequence[float]) -> tuple[str, str]:
    """The best and, of three or more, the second best value as printed, so that equal numbers look equal."""
    shown = sorted({f"{value:.3f}" for value in values}, key=float, reverse=True)
    best, second, *_ = (*shown, "", "")
    return best, second if len(values) > 2 else ""


def _cell(value: float | None, marks: tuple[str, str]) -> str:
    if value is None:
        return "--"
    shown = f"{value:.3f}"
    return (
        rf"\textbf{{{shown}}}" if shown == marks[0] else rf"\underline{{{shown}}}" if shown == marks[1] else shown
    )
