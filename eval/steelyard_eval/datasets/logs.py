"""Reads and checks the lines of a feedback log, one at a time, however long it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.inputs import lines
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.log_schema import LONGEST_LINE, decode

MOST = 1_000
"""Faults of a log that are collected; the rest is like them."""


def check_log(reader: FolderReader, name: str) -> None:
    """Record a fault for each line of a log that breaks its schema."""
    found = 0
    try:
        for number, raw in lines_of(reader.folder / name):
            try:
                decode(raw)
            except ValueError as error:
                reader.fault(name, number, "", "", str(error), "Correct the line; learning sets it aside")
                found += 1
            if found >= MOST:
                return
    except DataError as error:
        reader.fault(name, 0, "", "", f"cannot be read ({error})", "Put a readable log there")


@dataclass(frozen=True)
class HeldLog:
    """A log in memory: texts of queries that no file keeps are in its lines."""

    name: str
    lines: tuple[bytes, ...]

    def __str__(self) -> str:
        return self.name


def lines_of(path: str | Path | HeldLog) -> Iterator[tuple[int, bytes]]:
    """The lines of a log that are not blank with their numbers, compressed or not; DataError for no such file."""
    if isinstance(path, HeldLog):
        yield from enumerate(path.lines, 1)
        return
    try:
        yield from lines(path, LONGEST_LINE)
    except OSError as error:
        place, reason = shown(str(path), PATH_WIDTH), error.strerror or error
        raise DataError(f"cannot read the feedback log {place}: {reason}; name a JSON Lines file") from None
