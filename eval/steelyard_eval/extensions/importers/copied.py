r"""Reads rows that PostgreSQL wrote as text: COPY blocks of a plain dump, and the literals of arrays and vectors.

Of a dump only the COPY blocks are read; no statement in it is looked at, and nothing is run.

>>> array_of('{a,"needs, review",NULL,"NULL"}')
['a', 'needs, review', None, 'NULL']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Row = dict[str, str | None]

_BEGIN = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^()]*)\) FROM stdin;')
_END = "\\."
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*+)"?|([^,"{}]+)')
"""A quote that is never closed ends with the text: what stands in it is not read again from each of its places."""


def copied_rows(lines: Iterable[str], tables: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Each row of these tables with the table's name; ValueError for a row with another number of columns."""
    wanted = frozenset(tables)
    table, columns = "", list[str]()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\n")
        if not columns:
            begin = _BEGIN.fullmatch(line)
            if begin:
                table, columns = begin[1], [name.strip().strip('"') for name in begin[2].split(",")]
        elif line == _END:
            columns = []
        elif table in wanted:
            values = line.split("\t")
            if len(values) != len(columns):
                raise ValueError(f"line {number} has {len(values)} values for {len(columns)} columns of {table}")
            yield table, dict(zip(columns, map(_value, values), strict=True))


def _value(text: str) -> str | None:
    return None if text == r"\N" else _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return _NAMED.get(code, code)


def array_of(text: str | None) -> list[str | None]:
    """A one-dimensional array of texts; ValueError for text that is none."""
    if not text:
        return []
    inner = text.removeprefix("{").removesuffix("}")
    if len(inner) != len(text) - 2:
        raise ValueError(f"{text:.40} is no array")
    return [
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else None if match[2] == "NULL" else match[2]
        for match in _ITEM.finditer(inner)
    ]
