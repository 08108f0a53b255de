"""The tables of a result, laid out once: every view shows these and no others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A heading, and whether its cells are numbers, which stand on the right."""

    name: str
    right: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of texts, with the line that says what its columns mean.

    `words` holds a word for each row that has one, its verdict or what it is: for colour alone.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str = ""
    words: tuple[str, ...] = ()
