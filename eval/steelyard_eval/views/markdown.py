"""The answer and the tables as Markdown; nothing in them can start markup."""

from __future__ import annotations

import shlex

from steelyard_eval.common.console import brief
from steelyard_eval.common.markup import markdown, markdown_code
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Answer, Result, Step
from steelyard_eval.views.sheets import Sheet, sheets


def render(result: Result, *, short: bool = False) -> str:
    """The answer, a list of steps, pipe tables, notes."""
    notes = "\n".join(f"- {markdown(say(notice))}" for notice in result.notices)
    return "\n\n".join(filter(None, (answered(result.answer), *map(section, sheets(result, short)), notes))) + "\n"


def answered(answer: Answer) -> str:
    """The answer, what holds a stronger one back, what to do, the formula."""
    formula = markdown_code(brief(answer.formula)) if answer.formula else ""
    because = markdown(" ".join(map(say, answer.because)))
    steps = "\n".join(f"- {step_line(step)}" for step in answer.steps)
    return "\n\n".join(filter(None, (f"**{markdown(say(answer))}**", because, steps, formula)))


def step_line(step: Step) -> str:
    """One thing to do, with its command as code."""
    command = f": {markdown_code(shlex.join(step.command))}" if step.command else ""
    return f"{markdown(say(step))}{command}"


def section(sheet: Sheet) -> str:
    """A table with its title and its legend."""
    legend = "\n\n".join(map(markdown, sheet.legend.splitlines()))
    return "\n\n".join(filter(None, (f"### {markdown(sheet.title)}", legend, table(sheet))))


def table(sheet: Sheet) -> str:
    """A pipe table."""
    rows = [[column.name for column in sheet.columns], *sheet.rows]
    lines = [f"| {' | '.join(map(markdown, row))} |" for row in rows]
    lines.insert(1, f"|{'|'.join('---:' if column.right else '---' for column in sheet.columns)}|")
    return "\n".join(lines)
