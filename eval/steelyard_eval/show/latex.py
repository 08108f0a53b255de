"""Results as LaTeX tables, as papers on retrieval print them: the best bold, marks told in the caption."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from steelyard.base.errors import ConfigError
from steelyard_eval.common.answer import chosen, data_set
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import interval, number, tex
from steelyard_eval.measures.paired import ALPHA

_CHOSEN = r"$^{\star}$"
_TUNED = r"$^{\dagger}$"
_UNASKED = {"RecallAll@10", "Judged@10"}
"""Of the metrics that are measured where none are named, those that a paper would have to explain."""
_SIGNS = {"better": r"$^{\blacktriangle}$", "worse": r"$^{\blacktriangledown}$"}


def latex(record: ResultsDocument) -> str:
    r"""A table of the means of a comparison or a recommendation; it needs the packages booktabs and amssymb.

    The baseline stands first; a triangle marks what is significantly better or worse than it by the test of the
    document (paired, two-sided, Holm's correction), on the metric that was tested. A star marks what a
    recommendation chose, a dagger what was tuned on these queries. The label of the table is ``tab:``, the name of
    the data set's folder, and ``-compare`` or ``-recommend``. Without metrics of your own, RecallAll@10 and
    Judged@10 are left out.
    """
    if not record.get("results"):
        raise ConfigError("there are no means of contenders in this result, so there is no table of them")
    measured = dict.fromkeys(row["metric"] for row in record["results"])
    values = {(row["label"], row["metric"]): row["mean"] for row in record["results"]}
    primary, baseline = record["primary"], record.get("baseline")
    metrics = record.get("metrics") or [name for name in measured if name == primary or name not in _UNASKED]
    tested = {(row["challenger"], row["metric"]): row["verdict"] for row in record["comparisons"]}
    labels = sorted(
        (row["label"] for row in record["configurations"] if (row["label"], primary) in values),
        key=lambda label: (label != baseline, -values[label, primary], label),
    )
    marks = {metric: _marks([values[label, metric] for label in labels if (label, metric) in values])
             if not metric.startswith("Judged@") else ("", "")  # coverage of labels is no quality
             for metric in metrics}  # fmt: skip
    choice = chosen(record) if record.get("leaderboard") else ""
    tuned = {one["label"] for one in record["configurations"] if one.get("tuned")}
    rows = []
    for label in labels:
        cells = [
            _cell(values.get((label, m)), marks[m]) + _SIGNS.get(tested.get((label, m), ""), "") for m in metrics
        ]
        start = "{}" if label.startswith(("[", "*")) else ""  # both would belong to the line before
        name = f"{start}{tex(label)}{_CHOSEN if label == choice else ''}{_TUNED if label in tuned else ''}"
        rows.append(f"{name} & {' & '.join(cells)} \\\\")
        rows += [r"\midrule"] if label == baseline and len(labels) > 1 else []
    head = " & ".join(tex(metric) for metric in metrics)
    of = re.sub("[^A-Za-z0-9]+", "-", data_set(record["dataset"])).strip("-") or "results"
    name = f"tab:{of}-{'recommend' if record.get('leaderboard') else 'compare'}"
    said = [*_caption(record, tested.values()), *(_choice(record) if choice in labels else ())]
    said += [f"{_TUNED}: tuned on these queries, so its mean is optimistic."] if tuned & {*labels} else []
    caption = "\n".join(said)
    lines = (
        rf"% Needs \usepackage{{booktabs,amssymb}}; the text names it by Table~\ref{{{name}}}.",
        r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{{name}}}",
        rf"\begin{{tabular}}{{l{'c' * len(metrics)}}}", r"\toprule", rf"System & {head} \\", r"\midrule", *rows,
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    )  # fmt: skip
    return "\n".join(lines) + "\n"


def _caption(record: ResultsDocument, verdicts: Collection[str]) -> Iterator[str]:
    """What the table has, and what its marks mean."""
    queries = record["results"][0].get("queries") or "the"
    yield f"Means over {queries} queries of {tex(data_set(record['dataset']))}, lists of {record['limit']}."
    yield "Best in bold, second best underlined."
    if verdicts:
        marks = r"$^{\blacktriangle}$ ($^{\blacktriangledown}$): better (worse) than"
        marks = marks if _SIGNS.keys() & {*verdicts} else "No system is significantly better or worse than"
        yield f"{marks} {tex(str(record.get('baseline')))} in {tex(record['primary'])},"
        yield f"two-sided paired randomisation test, $p < {ALPHA}$ after Holm's correction."


def _choice(record: ResultsDocument) -> Iterator[str]:
    """What the star means, with the gain on queries that were not chosen on."""
    promise = record.get("promise")
    if not promise or not record.get("promise_stated", True):
        yield f"{_CHOSEN}: chosen."
    else:
        around = interval(promise.get("low"), promise.get("high"), signed=True).replace("-", "$-$")
        gain = f"${number(promise['value'], signed=True)}$ {tex(record['primary'])}"
        yield f"{_CHOSEN}: chosen; out of fold its gain is {gain} {around}."
    yield "Tuned rows were chosen on these queries, so their means are optimistic."


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
