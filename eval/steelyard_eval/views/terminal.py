"""The answer, what to do, aligned tables, notes; control characters are escaped."""

import shlex

from steelyard.base.errors import visible
from steelyard_eval.common.console import STEP_INDENT, brief, folded, grid, step_text, with_colours, wrapped
from steelyard_eval.common.formatting import MISSING
from steelyard_eval.result.sentences import VERDICTS, heading, say
from steelyard_eval.result.structs import Result
from steelyard_eval.views.sheets import Sheet, facts_of, sheets

MAX_NOTES = 3


def render(result: Result, *, full: bool = False, notes: bool = True) -> str:
    """The answer, its tables, what to do, what to know; `full` has every row, table and note.

    `notes` are left out where they are printed elsewhere.
    """
    told = [heading("note", {"text": text}) for text in noted(result, full)] if notes else []
    tables = "\n\n".join(map(table, sheets(result, short=not full)))
    about, answer = result.provenance, result.answer
    facts = {**facts_of(result), "split": about.split, "intents": about.intents or None}
    facts |= {"unlabelled": None if about.data.judged else about.data.queries or 0}
    where = heading("about", {**facts, "model": about.model or "none"}) if result.rows else ""
    below = "\n".join(wrapped(line) for line in (where, " ".join(map(say, answer.because))) if line)
    to_do = "\n".join(step_text(say(step), shlex.join(step.command)) for step in answer.steps)
    parts = [with_colours(wrapped(say(answer))), tables, below, to_do, wrapped(brief(answer.formula), STEP_INDENT)]
    return "\n\n".join(filter(None, (*parts, "\n".join(folded(visible(text)) for text in told))))


def noted(result: Result, full: bool = False) -> list[str]:
    """The notices of a result, a line each; unless `full` the first few, and how many more there are.

    That a budget decides nothing comes first; what is said of the data set, which `check` has, too, last.
    """
    places = {"all_held": -1, "plain_text": 1}
    said = [say(notice) for notice in sorted(result.notices, key=lambda notice: places.get(notice.key, 0))]
    if full or len(said) <= MAX_NOTES:
        return said
    return [*said[:MAX_NOTES], heading("more_notes", {"count": len(said) - MAX_NOTES})]


def table(sheet: Sheet) -> str:
    """A table, below the line that says what its columns mean, where that is no part of it."""
    heads = [visible(column.name) for column in sheet.columns]
    cells = [["-" if cell == MISSING else visible(cell) for cell in row] for row in sheet.rows]
    right = [column.right for column in sheet.columns]
    words = {told: key for key, told in VERDICTS.items()}
    legend = [wrapped(line, STEP_INDENT) for line in sheet.legend.splitlines()]
    return "\n".join((grid(heads, cells, right, words=words), *legend))
