"""How much memory a command may take: beyond it an allocation fails, and the command ends with one message.

The system counts what the process allocates (RLIMIT_DATA, which Linux has); files that are mapped do not count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from steelyard.base.machine import VARIABLE, memory_bytes

try:
    import resource
except ImportError:  # Windows: nothing is bounded
    resource = None  # type: ignore[assignment]  # there is no such module on Windows

LEAST = 512 * 2**20
"""Bytes; the program itself takes about 250 MB."""
SIZE = re.compile(r"([0-9]{1,9})([MG])i?B?", re.IGNORECASE | re.ASCII)


def usual() -> int:
    """The bytes that a command may take where nothing is said: three quarters of the machine's memory."""
    return max(LEAST, memory_bytes() * 3 // 4)


def read_size(text: str) -> int:
    """The bytes of a size such as 800M or 4G; ValueError for another text and below `LEAST`.

    >>> read_size("2G") == 2 * 2**30
    True
    """
    match = SIZE.fullmatch(text)
    size = int(match[1]) * 2 ** {"M": 20, "G": 30}[match[2].upper()] if match else 0
    if size < LEAST:
        raise ValueError(f"write it as 800M or 4G, {LEAST >> 20}M or more")
    return size


@contextmanager
def bounded(size: int | None) -> Iterator[None]:
    """Inside, this process and those that it starts may take `size` bytes each; `usual` without one.

    A quarter of a size that was asked for is for what vaults keep in memory, unless the environment says how much.
    """
    exported = size is not None and VARIABLE not in os.environ
    before = resource.getrlimit(resource.RLIMIT_DATA) if resource else (0, 0)
    if size is not None and exported:
        os.environ[VARIABLE] = str(size >> 22)
    try:
        if resource and (size is not None or before[0] == resource.RLIM_INFINITY):
            resource.setrlimit(resource.RLIMIT_DATA, (size or usual(), before[1]))
        yield
    finally:
        if resource:
            resource.setrlimit(resource.RLIMIT_DATA, before)
        if exported:
            os.environ.pop(VARIABLE, None)
