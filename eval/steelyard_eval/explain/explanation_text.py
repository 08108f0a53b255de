"""Shows an explanation on a terminal, within its width, and in a notebook, with all text escaped."""

from __future__ import annotations

import textwrap
from html import escape

from steelyard.base.errors import visible
from steelyard_eval.common.console import table, width
from steelyard_eval.common.documents.explanation import ExplanationDocument
from steelyard_eval.explain.text_tables import TextTable, blocks

ID_WIDTH = 36
"""Ids are clipped to this, so that they stay on one line; everything else is whole."""


def text(record: ExplanationDocument) -> str:
    """Print the explanation for a terminal."""
    return "\n\n".join(_text(block) for block in blocks(record))


def html(record: ExplanationDocument) -> str:
    """Print the explanation as HTML for a notebook, with every cell escaped."""
    return "".join(_html(block) for block in blocks(record))


def _text(block: TextTable) -> str:
    lines = "\n".join(line for written in block.lines for line in _wrapped(visible(written)))
    if not block.rows:
        return lines
    columns = [_column(head, cells) for head, *cells in zip(block.heads, *block.rows, strict=True)]
    keys = [str(place) for place in range(len(columns))]  # several headings are empty
    rows = [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]
    return f"{lines}\n\n{table(rows, dict(zip(keys, block.heads, strict=True)), width(), block.keys)}"


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width(), subsequent_indent=f"{indent}    ") or [""]


def clip(cell: str, width: int) -> str:
    """Clip a cell to `width` characters, keeping both ends, because ids often differ in the last.

    >>> clip("conversation-26-session-14", 16)
    'convers..sion-14'
    """
    if len(cell) <= width:
        return cell
    tail = (width - 2) // 2
    return f"{cell[: width - 2 - tail]}..{cell[len(cell) - tail :]}"


def _column(head: str, cells: list[str]) -> list[str]:
    """The cells of a column, harmless; numbers are aligned right, and ids clipped."""
    harmless = [visible(cell) for cell in cells]
    if head == "entry":
        return [clip(cell, ID_WIDTH) for cell in harmless]
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
