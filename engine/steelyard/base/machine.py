"""The memory of this machine, how much of it arrays may take, and how vectors are kept in it."""

import os

from steelyard.base.errors import ConfigError, quote

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
        raise ConfigError(f"{MEMORY} is {quote(named)}; it must be a whole number of MiB, 0 or more")
    return int(named) * 2**20


def precision() -> str:
    """One of `PRECISIONS`; ConfigError for another value."""
    named = os.environ.get(PRECISION) or PRECISIONS[0]
    if named not in PRECISIONS:
        raise ConfigError(f"{PRECISION} is {quote(named)}; it must be {' or '.join(PRECISIONS)}")
    return named
