"""Shows an explanation on a terminal, within its width, and in a notebook, with all text escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from steelyard.base.errors import visible
from steelyard_eval.common.console import GAP, table, width
from steelyard_eval.common.documents.explanation import ExplanationDocument
from steelyard_eval.explain.text_tables import TextTable, blocks

ID_WIDTH = 36
CAUSE_WIDTH = 64
LAST_WIDTH = 14
"""The last column, a headline, is clipped to what is left of the line; below this it is left out."""

Columns = list[list[str]]


def text(record: ExplanationDocument) -> str:
    """Print the explanation for a terminal."""
    return "\n\n".join(_text(block) for block in blocks(record))


def html(record: ExplanationDocument) -> str:
    """Print the explanation as HTML for a notebook, with every cell escaped."""
    return "".join(_html(block) for block in blocks(record))


def _text(block: TextTable) -> str:
    lines = [line for written in block.lines for line in _wrapped(visible(written))]
    if not block.rows:
        return "\n".join(lines)
    columns = [_column(head, cells) for head, cells in zip(block.heads, _cells(block), strict=True)]
    return "\n".join(lines) + "\n\n" + "\n\n".join(map(_grid, _pages(columns, block.keys)))


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width(), subsequent_indent=f"{indent}    ") or [""]


def _cells(block: TextTable) -> Columns:
    """Cells by column, harmless; ids and causes are clipped, reasons whole; the last column is clipped later."""
    cells = [[visible(cell) for cell in column] for column in zip(*block.rows, strict=True)]
    widths = [{"entry": ID_WIDTH, "where": None}.get(head, CAUSE_WIDTH) for head in block.heads[:-1]]
    clipped = [
        [clip(cell, width) if width else cell for cell in column]
        for column, width in zip(cells[:-1], widths, strict=True)
    ]
    return [*clipped, cells[-1]]


def clip(cell: str, width: int) -> str:
    """Clip a cell to `width` characters, keeping both ends, because ids often differ in the last.

    >>> clip("conversation-26-session-14", 16)
    'convers..sion-14'
    """
    if len(cell) <= width:
        return cell
    tail = (width - 2) // 2
    return f"{cell[: width - 2 - tail]}..{cell[len(cell) - tail :]}"


def _column(head: str, cells: Sequence[str]) -> list[str]:
    """Heading and cells, padded; numbers are aligned right."""
    numeric = head != "entry" and all(_numeric(cell) for cell in cells)
    width = max(len(head), *map(len, cells))
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in (head, *cells)]


def _numeric(cell: str) -> bool:
    return bool(cell) and set(cell) <= set("+-.0123456789x")


def _pages(columns: Columns, keys: int) -> list[Columns]:
    """Distribute the columns over as few tables as fit the terminal, each beginning with the key columns."""
    *body, last = columns
    room = width()
    pages = [body[:keys]]
    for column in body[keys:]:
        if len(pages[-1]) > keys and _width([*pages[-1], column]) > room:
            pages.append(body[:keys])
        pages[-1] = [*pages[-1], column]
    left = room - _width(pages[-1]) - GAP
    if left >= LAST_WIDTH:
        pages[-1] = [*pages[-1], [_head(cell.rstrip(), left) for cell in last]]
    return pages


def _head(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 2] + ".."


def _width(columns: Columns) -> int:
    return sum(len(column[0]) + GAP for column in columns) - GAP


def _grid(columns: Columns) -> str:
    """Print the columns, which are already padded, by the shared function for tables."""
    keys = [str(i) for i in range(len(columns))]
    heads, *rows = (dict(zip(keys, line, strict=True)) for line in zip(*columns, strict=True))
    return table(rows, heads)


def _html(block: TextTable) -> str:
    lines = "\n".join(escape(visible(line)) for line in block.lines)
    return f"<pre>{lines}</pre>" + (_html_table(block) if block.rows else "")


def _html_table(block: TextTable) -> str:
    head = "".join(f"<th>{escape(visible(cell))}</th>" for cell in block.heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in row) + "</tr>" for row in block.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
