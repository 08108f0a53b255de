"""Prints what a search found, and what a vault holds, with control characters escaped."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from steelyard.base.errors import visible
from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry, Hit
from steelyard.systems.base import scan_result
from steelyard_eval.common.console import cut, painted, table, width

INDENT = 13
"""The column at which the text below a hit begins, under its id."""


def listing(entries: Iterable[Entry]) -> str:
    """Print one line for each entry: day, type, id and title."""
    return table(
        [
            {"created": format_time(e.created_at)[:10], "type": e.type, "id": e.id, "title": e.title}
            for e in entries
        ],
        {name: name for name in ("created", "type", "id", "title")},
    )


def hits(found: Iterable[Hit]) -> str:
    """Print a block for each search result: rank, score, id and title; the text; the signals of the score."""
    return "\n".join(map(_hit, found)) or "nothing found"


def _hit(hit: Hit) -> str:
    breakdown = "  ".join(f"{visible(name)} {value:.4f}" for name, value in hit.signals.items())
    text = wrap(visible(hit.entry.text), width() - INDENT, max_lines=4, placeholder=" ...")
    return "\n".join([_head(hit), *(" " * INDENT + line for line in (*text, breakdown) if line)])


def scan(found: Iterable[Hit]) -> str:
    """Print a short block for each search result: rank, score, id and title; size, type and a snippet."""
    return "\n".join(map(_scanned, found)) or "nothing found"


def _scanned(hit: Hit) -> str:
    look = scan_result(hit)
    about = f"~{look['tokenEstimate']} tokens" + (f", {visible(look['type'])}" if look["type"] else "")
    lines = wrap(f"{about}: {visible(look['snippet'])}", width() - INDENT)
    return "\n".join([_head(hit), *(" " * INDENT + line for line in lines)])


def _head(hit: Hit) -> str:
    score = "     -" if hit.score is None else f"{hit.score:.4f}"
    place = f"{hit.rank:>3}  {score}  {visible(hit.entry.id)}"
    return f"{painted(place)}  {cut(visible(hit.entry.title), width() - len(place) - 2)}".rstrip()
