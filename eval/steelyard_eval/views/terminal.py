"""The answer, what to do, aligned tables, notes; control characters are escaped."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from steelyard.base.errors import visible
from steelyard_eval.common.console import INDENT, brief, grid, painted, step_text, wrapped
from steelyard_eval.common.markup import MISSING
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.sentences.headings import VERDICTS
from steelyard_eval.result.structs import Answer, Result, Step
from steelyard_eval.views.sheets import Sheet, facts_of, sheets


def render(result: Result, *, notes: bool = True) -> str:
    """The result as text; `notes` are left out where they were printed elsewhere."""
    return "\n\n".join(
        [*_above(result), *map(table, sheets(result, short=True)), *(_notes(result) if notes else ())]
    )


def _above(result: Result) -> Iterator[str]:
    yield answered(result.answer)
    about = result.provenance
    if result.rows:
        facts = {**facts_of(result), "split": about.split, "intents": about.intents or None}
        yield wrapped(heading("about", {**facts, "model": about.model or "none"}))


def answered(answer: Answer) -> str:
    """The answer, what to do, the formula, what else to know."""
    steps = "\n".join(step_line(step) for step in answer.steps)
    formula = wrapped(brief(answer.formula), INDENT) if answer.formula else ""
    because = wrapped(" ".join(map(say, answer.because)))
    return "\n\n".join(filter(None, (painted(wrapped(say(answer))), because, steps, formula)))


def step_line(step: Step) -> str:
    """One thing to do, with its command."""
    return step_text(say(step), shlex.join(step.command))


def table(sheet: Sheet) -> str:
    """A table, below the line that says what its columns mean, where that is no part of it."""
    heads = [visible(column.name) for column in sheet.columns]
    cells = [["-" if cell == MISSING else visible(cell) for cell in row] for row in sheet.rows]
    right = [column.right for column in sheet.columns]
    words = {told: key for key, told in VERDICTS.items()}
    legend = "\n\n".join(wrapped(line, INDENT) for line in sheet.legend.splitlines())
    return "\n\n".join(filter(None, (grid(heads, cells, right, words=words), legend)))


def _notes(result: Result) -> list[str]:
    said = "\n".join(wrapped(heading("note", {"text": say(notice)})) for notice in result.notices)
    return [said] if said else []
