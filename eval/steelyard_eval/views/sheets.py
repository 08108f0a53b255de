"""The tables of a result, laid out once: every view shows these and no others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from steelyard_eval.common.formatting import MISSING, interval, number, p_value
from steelyard_eval.result.sentences import (
    BASELINE,
    CELLS,
    CHOSEN,
    DETAILS,
    FORMS,
    HEADINGS,
    TODAY,
    TUNED,
    VERDICTS,
    heading,
    say,
)  # fmt: skip
from steelyard_eval.result.structs import Cell, Estimate, Fact, Result, Row

MAX_SHORT_ROWS = 8
ALWAYS_SHOWN = ("bm25", "vector")
LEVEL_IN_HEADING = " [95%]"
Columns = Mapping[str, Sequence[Cell]]


@dataclass(frozen=True)
class SheetColumn:
    """A heading, and whether its cells are numbers, which stand on the right; the glossary knows its `key`."""

    name: str
    right: bool = False
    key: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of texts, with the lines that say what its columns mean.

    `words` holds a word for each row that has one, its verdict or what it is: for colour alone.
    """

    key: str
    title: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str = ""
    words: tuple[str, ...] = ()


def sheets(result: Result, short: bool = False) -> list[Sheet]:
    """Contenders with means and costs, their tests, and further tables.

    A `short` one has the first metric with its interval and the others without, and of a decision the best rows.
    """
    rows = ranked(result)
    if short:
        rows = leading(result) if result.decision else list(result.rows)
    found = _findings_sheet(result) if result.findings and not (short and result.rows) else None
    parts = [contenders(result, rows, short), _tests(result, rows, short), found]
    parts += [
        _sheet(result, one.key, dict(zip(one.columns, zip(*one.rows, strict=True), strict=True)), one.facts)
        for one in result.tables
        if one.rows and not (short and (one.key in DETAILS or (result.decision and one.key == "agreement")))
    ]
    return [sheet for sheet in parts if sheet]


def ranked(result: Result) -> list[Row]:
    """Contenders by their mean of the first metric, best first; equal ones by label, those without a mean last."""
    known = {row.label: row.means[result.metric].mean for row in result.rows if result.metric in row.means}
    return sorted(result.rows, key=lambda row: (-known.get(row.label, float("-inf")), row.label))


def leading(result: Result) -> list[Row]:
    """Of a decision the choice, today's, the best other, plain bm25 and vectors; of a comparison the best.

    The baseline, the choice and a simpler one that a sentence names are among them, wherever they stand.
    """
    rows = ranked(result)
    kept = {result.provenance.baseline, result.choice.label if result.choice else ""}
    kept |= {str(said.facts["label"]) for said in result.answer.because if said.key == "simpler"}
    others = [row.label for row in rows if row.label not in kept]
    kept |= {*others[:1], *ALWAYS_SHOWN} if result.decision else {*others[:MAX_SHORT_ROWS]}
    return [row for row in rows if row.label in kept]


def facts_of(result: Result) -> dict[str, Fact]:
    """What headings and legends name."""
    about = result.provenance
    return {
        "metric": result.metric,
        "baseline": TODAY if result.decision else about.baseline or None,
        "queries": about.data.judged or None,
        "data": about.data.called,
        "limit": about.limit,
    }


def name_of(result: Result, row: Row) -> str:
    """The label of a contender, and whether it was chosen, is the baseline, or was tuned on these queries."""
    chosen = result.decision is not None and row.label == result.decision.chosen
    base = row.label == result.provenance.baseline and len(result.rows) > 1
    marks = {CHOSEN: chosen, TODAY if result.decision else BASELINE: base, TUNED: row.tuned and not row.edited}
    words = ", ".join(word for word, marked in marks.items() if marked)
    return f"{row.label} ({words})" if words else row.label


def contenders(result: Result, rows: Sequence[Row], short: bool) -> Sheet | None:
    """Every contender with its means, what it gains where that is no table of its own, and what a search costs."""
    if not any(row.means for row in rows):
        return None
    first, others = result.metric, result.provenance.metrics[1:]
    columns: dict[str, Sequence[Cell]] = {
        "contender": [name_of(result, row) for row in rows],
        "interval": [row.means.get(first) for row in rows],
    }
    for metric in () if short and result.decision else others:
        means = [row.means.get(metric) for row in rows]
        columns[metric] = [mean and mean.mean for mean in means] if short else means
    below = []
    if result.decision:
        columns["gain"] = [row.against.gain if row.against else row.gain for row in rows]
        left = len(result.rows) - len(rows)  # none of them is better than the best that is shown
        below = [heading("more_rows", {"count": left})] if short and left else []
    if not (short and result.decision):
        times = [row.cost.latency for row in rows]
        sizes = [(row.cost.keyword_bytes, row.cost.vector_bytes) for row in rows]
        columns["p50_ms"] = [took.p50_ms if took else None for took in times]
        if not short:
            columns["p95_ms"] = [took.p95_ms if took else None for took in times]
        columns["embedded"] = [row.cost.embedded for row in rows]
        columns["megabytes"] = [None if None in (a, b) else ((a or 0) + (b or 0)) / 1e6 for a, b in sizes]
    return _sheet(result, "contenders", columns, below=below, words=[row.kind for row in rows])


def _tests(result: Result, rows: Sequence[Row], short: bool) -> Sheet | None:
    """The tests against the baseline; why one is left open is a column, or below a short table."""
    tested = [(row.label, row.against) for row in rows if row.against]
    if not tested or (short and result.decision):
        return None
    tests = [test for _, test in tested]
    columns: dict[str, Sequence[Cell]] = {
        "challenger": [label for label, _ in tested],
        "verdict": [VERDICTS[test.verdict if test.wins or test.losses else "equal"] for test in tests],
        "difference": [test.gain if test.wins or test.losses else Estimate(test.gain.mean) for test in tests],
        "p": [test.p for test in tests],
        "p_holm": [test.p_holm for test in tests],
        "counts": [f"{test.wins}/{test.ties}/{test.losses}" for test in tests],
        "detectable": [test.detectable for test in tests],
    }
    why = [None if test.why is None or test.why in result.answer.because else say(test.why) for test in tests]
    told = [f"{label}: {reason}" for (label, _), reason in zip(tested, why, strict=True) if reason]
    if told and not short:
        columns["why"] = why
    return _sheet(result, "tests", columns, below=told if short else (), words=[test.verdict for test in tests])


def _findings_sheet(result: Result) -> Sheet | None:
    found = result.findings
    columns: Columns = {
        "contender": [one.contender or None for one in found],
        "verdict": [one.verdict for one in found],
        "finding": list(map(say, found)),
    }
    return _sheet(result, "findings", columns, words=[one.verdict for one in found]) if found else None


def _sheet(
    result: Result,
    key: str,
    columns: Columns,
    facts: Mapping[str, Fact] | None = None,
    *,
    below: Sequence[str] = (),
    words: Sequence[str] = (),
) -> Sheet:
    """A sheet of columns in which anything is known, with the lines that explain it, and those `below` these."""
    known = {**facts_of(result), **(facts or {})}
    columns = {
        name: cells
        for at, (name, cells) in enumerate(columns.items())
        if not at or any(c is not None for c in cells)
    }
    numbers = {
        name: all(isinstance(cell, int | float | None) for cell in cells) for name, cells in columns.items()
    }
    heads = tuple(SheetColumn(_head(name, columns[name], known), right, name) for name, right in numbers.items())
    texts = [[_text(cell, CELLS.get(name, "")) for cell in cells] for name, cells in columns.items()]
    legends = [heading(f"legend_{name}", known) for name in {key: "", **columns} if f"legend_{name}" in HEADINGS]
    legend = "\n".join(filter(None, (" ".join(legends), *below)))
    return Sheet(key, heading(f"title_{key}", known), heads, tuple(zip(*texts, strict=True)), legend, tuple(words))


def _head(name: str, cells: Sequence[Cell], known: Mapping[str, Fact]) -> str:
    """The heading of a column, which speaks of intervals only where there is one."""
    without = all(cell.low is None for cell in cells if isinstance(cell, Estimate))
    return heading(name, known).removesuffix(LEVEL_IN_HEADING if without else "")


def triple(value: Estimate, *, signed: bool = False) -> str:
    """A value with its interval."""
    return f"{number(value.mean, signed=signed)} {interval(value.low, value.high, signed=signed)}".rstrip()


_LOOKS: Mapping[str, Callable[[Any], str]] = {
    **FORMS,
    "": lambda of: triple(of) if isinstance(of, Estimate) else number(of) if isinstance(of, float) else str(of),
    "power": "{:.1e}".format,
    "word": heading,
    "p": p_value,
    "gain": partial(triple, signed=True),
    "unbounded": lambda of: f"{of.mean:+.3f} [{of.low:+.3f}, {of.high:+.3f}]",
}
"""How the cells of a column look, by the names that `CELLS` has for it: forms of sentences and of tables."""


def _text(cell: Cell, look: str) -> str:
    return MISSING if cell is None else _LOOKS[look](cell)
