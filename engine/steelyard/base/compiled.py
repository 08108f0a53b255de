"""Compiles a loop, with the machine code cached in the package's or the user's cache folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

OPTIONS: dict[str, Any] = {"nogil": True}


@cache
def compiled(loop: Callable[..., None], signature: str) -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """Compile a loop; it calls no other function of ours, because the cache only notices changes to its file.

    Where neither folder can be written, or the cache is damaged, it is compiled in memory, in half a second.
    """
    from numba import njit  # it takes long to load

    try:
        made = njit(cache=True, **OPTIONS)(loop)
        made.compile(signature)
    except Exception:  # RuntimeError, OSError, and whatever reading a broken file raises
        made = njit(**OPTIONS)(loop)
        made.compile(signature)
    return made
