"""Reads and checks the lines of a feedback log, one at a time, however long it is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.inputs import open_regular
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.log_schema import LONGEST_LINE, decode

MOST = 1_000
"""Faults of a log that are collected; the rest is like them."""


def check_log(reader: FolderReader, name: str) -> None:
    """Record a fault for each line of a log that breaks its schema."""
    found = 0
    try:
        for number, raw in enumerate(lines_of(reader.folder / name), 1):
            try:
                if raw.strip():
                    decode(raw)
            except ValueError as error:
                reader.fault(name, number, "", "", str(error), "Correct the line; learning sets it aside")
                found += 1
            if found >= MOST:
                return
    except DataError as error:
        reader.fault(name, 0, "", "", f"cannot be read ({error})", "Put a readable log there")


def lines_of(path: str | Path) -> Iterator[bytes]:
    """The lines of a log, compressed or not; DataError when it cannot be read."""
    place = shown(str(path), PATH_WIDTH)
    try:
        with open_regular(path) as raw:
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if str(path).endswith(".gz") else raw
            while line := stream.readline(LONGEST_LINE + 1):
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the feedback log {place}: {reason}; name a JSON Lines file") from None
