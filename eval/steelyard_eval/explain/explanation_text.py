"""Shows an explanation on a terminal, within its width, and in a notebook, with all text escaped."""

from __future__ import annotations

from html import escape

from steelyard.base.errors import visible
from steelyard_eval.common.console import GAP, cut, table, width, wrapped
from steelyard_eval.explain.document import ExplanationDocument
from steelyard_eval.explain.text_tables import PARTED, TITLE, TextTable, blocks

PAGES = "\n\n"
"""Between the tables into which one that is too wide is split."""
ID_WIDTH = 36
"""Ids of so many characters, or of half a line, are whole, so that they can be copied; others are clipped."""
FOLDED, CUT = 16, 24
"""Columns of text are folded to no less than the first; titles of a list are cut to the second, or left out."""


def text(record: ExplanationDocument) -> str:
    """Print the explanation for a terminal."""
    return "\n\n".join(_text(block) for block in blocks(record))


def html(record: ExplanationDocument) -> str:
    """Print the explanation as HTML for a notebook, with every cell escaped."""
    return "".join(_html(block) for block in blocks(record))


def _text(block: TextTable) -> str:
    lines = "\n".join(map(_wrapped, block.lines))
    if not block.rows:
        return lines
    shown = bare = _table(block, without=TITLE)
    room = width() - max(map(len, bare.splitlines())) - GAP if block.single else None
    if room is None or room >= CUT:
        shown = _table(block, room)
    return f"{lines}\n\n{bare if PAGES in shown else shown}"


def _table(block: TextTable, room: int | None = None, without: str = "") -> str:
    columns = {
        head: _column(head, cells, room)
        for head, *cells in zip(block.heads, *block.rows, strict=True)
        if head != without
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return table(rows, None, width(), block.keys, FOLDED)


def _wrapped(line: str) -> str:
    """Fold a line between its facts, and a fact only where it is wider than the terminal."""
    indent = len(line) - len(line.lstrip())
    first, *others = line.lstrip().split(PARTED)
    folded = [" " * indent + first]
    for fact in others:
        if len(visible(folded[-1] + PARTED + fact)) <= width():
            folded[-1] += PARTED + fact
        else:
            folded.append(" " * (indent + 4) + fact)
    return "\n".join(wrapped(part, indent + 4) for part in folded)


def clip(cell: str, width: int) -> str:
    """Clip a cell to `width` characters, keeping both ends, because ids often differ in the last.

    >>> clip("conversation-26-session-14", 16)
    'convers..sion-14'
    """
    if len(cell) <= width:
        return cell
    tail = (width - 2) // 2
    return f"{cell[: width - 2 - tail]}..{cell[len(cell) - tail :]}"


def _column(head: str, cells: list[str], room: int | None) -> list[str]:
    """The cells of a column, harmless; numbers are aligned right, long ids clipped, and titles cut to the room."""
    harmless = [visible(cell) for cell in cells]
    if head == "entry":
        return [clip(cell, max(ID_WIDTH, width() // 2)) for cell in harmless]
    if head == TITLE and room is not None:
        return [cut(cell, room) for cell in harmless]
    widest = max(map(len, (head, *harmless)))
    return [cell.rjust(widest) for cell in harmless] if all(map(_numeric, harmless)) else harmless


def _numeric(cell: str) -> bool:
    return bool(cell) and set(cell) <= set("+-.0123456789x")


def _html(block: TextTable) -> str:
    lines = "\n".join(escape(visible(line)) for line in block.lines)
    return f"<pre>{lines}</pre>" + (_html_table(block) if block.rows else "")


def _html_table(block: TextTable) -> str:
    head = "".join(f"<th>{escape(visible(cell))}</th>" for cell in block.heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in row) + "</tr>" for row in block.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
