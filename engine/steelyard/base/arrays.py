"""Types of arrays, how much memory they may take and how vectors are kept in it, and loops that are compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, shown

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
"""Codes, and positions in lists."""
Indices = NDArray[np.int64]
"""Offsets, rows and counts."""

MEMORY = "STEELYARD_MEMORY"
"""Names the MiB that the vectors of one space, or the postings of one keyword index, may take; 0 leaves all
searches to SQLite. Without it a quarter of the machine's memory."""
PRECISION = "STEELYARD_VECTORS"
"""Names how vectors are kept in memory: `float`, as they are, or `int8`, in a quarter of that."""
PRECISIONS = ("float", "int8")


def memory_bytes() -> int:
    """The bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**32  # this machine does not tell


def budget() -> int:
    """The most bytes of vectors or postings; ConfigError where the environment names no number of MiB."""
    named = os.environ.get(MEMORY, "")
    if not named:
        return memory_bytes() // 4
    if not (named.isascii() and named.isdecimal() and len(named) < 10):
        raise ConfigError(f"{MEMORY} is {shown(named)}; it must be a whole number of MiB, 0 or more")
    return int(named) * 2**20


def precision() -> str:
    """One of `PRECISIONS`; ConfigError for another value."""
    named = os.environ.get(PRECISION) or PRECISIONS[0]
    if named not in PRECISIONS:
        raise ConfigError(f"{PRECISION} is {shown(named)}; it must be {' or '.join(PRECISIONS)}")
    return named


@cache
def compiled(loop: Callable[..., None], signature: str, error_model: Literal["python", "numpy"] = "python") -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """Compile a loop that holds no lock; all that it calls is in its file, as the cache notices no other change.

    Where neither folder can be written, or the cache is damaged, it is compiled in memory, which takes longer.
    """
    from numba import njit  # it takes long to load

    try:
        made = njit(cache=True, nogil=True, error_model=error_model)(loop)
        made.compile(signature)
    except Exception:  # RuntimeError, OSError, and whatever reading a broken file raises
        made = njit(nogil=True, error_model=error_model)(loop)
        made.compile(signature)
    return made
