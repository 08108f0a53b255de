"""Checks the lines of a feedback log, one at a time, however long it is."""

from __future__ import annotations

from steelyard.errors import DataError
from steelyard_eval.datasets.files import FolderReader

MOST = 1_000
"""Faults of a log that are collected; the rest is like them."""


def check_log(reader: FolderReader, name: str) -> None:
    """Record a fault for each line of a log that breaks its schema."""
    from steelyard_eval.learn.reader import lines_of
    from steelyard_eval.learn.schema import decode

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
