"""What the installed FTS5 can do, tried on an empty table so that nothing depends on the vault at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import apsw

RANKING = "bm25"
"""The function that weighs fields; FTS5 has it since 3.9, and a build may leave it out."""


def readable(expression: str, fields: Sequence[str]) -> bool:
    """Whether FTS5 can read the expression as a search of a table with these fields."""
    try:
        _empty(tuple(fields)).execute("SELECT 1 FROM t WHERE t MATCH ?", (expression,)).fetchall()
    except apsw.SQLError:
        return False
    return True


def ranking(table: str, fields: tuple[str, ...], weights: Sequence[float]) -> tuple[str, tuple[float, ...]]:
    """An SQL expression, larger for a better match, and its bound values: bm25 with a weight a field.

    Where there is no such function it is FTS5's own rank, which knows no weights (Soleri's document).
    """
    if ranks_by_bm25(fields):
        return f"-{RANKING}({table}, {', '.join('?' * len(weights))})", tuple(weights)
    return f"-{table}.rank", ()


@lru_cache
def ranks_by_bm25(fields: tuple[str, ...]) -> bool:
    """Whether `ranking` is by bm25."""
    try:
        _empty(fields).execute(f"SELECT {RANKING}(t) FROM t WHERE t MATCH 'a'").fetchall()
    except apsw.SQLError:
        return False
    return True


def _empty(fields: tuple[str, ...]) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    columns = ", ".join(f'"{name}"' for name in fields)
    db.execute(f"CREATE VIRTUAL TABLE t USING fts5({columns})")
    return db
