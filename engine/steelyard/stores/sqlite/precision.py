"""How vectors are kept in memory."""

from __future__ import annotations

import os

from steelyard.base.errors import ConfigError, shown

PRECISION = "STEELYARD_VECTORS"
"""Names how vectors are kept in memory: `float`, as they are, or `int8`, in a quarter of that."""
PRECISIONS = ("float", "int8")


def precision() -> str:
    """One of `PRECISIONS`; ConfigError for another value."""
    named = os.environ.get(PRECISION) or PRECISIONS[0]
    if named not in PRECISIONS:
        raise ConfigError(f"{PRECISION} is {shown(named)}; it must be {' or '.join(PRECISIONS)}")
    return named
