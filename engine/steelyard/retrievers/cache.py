"""Caches what is computed from whole scopes of the store until its entries or vectors change."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from steelyard.stores.base import Readable

T = TypeVar("T")
SCOPES = 64
"""How many scopes are kept, the newest ones: queries with clocks of their own have one each."""


class ScopeCache(Generic[T]):
    """Caches ``build(scope)`` for every scope, and empties itself when the store's revision changes.

    Threads may share it; at worst two of them build the same value.
    """

    def __init__(self, store: Readable, build: Callable[[Any], T]) -> None:
        self._store, self._build = store, build
        self._kept: tuple[int, dict[Hashable, T]] = (-1, {})

    def __call__(self, scope: Hashable) -> T:
        """Return the value for a scope (`Filters`, or a tuple of several), built on first use."""
        revision, kept = self._store.revision(), self._kept
        if revision != kept[0]:
            self._kept = kept = (revision, {})
        try:
            return kept[1][scope]
        except KeyError:
            value = kept[1][scope] = self._build(scope)
        while len(kept[1]) > SCOPES:
            kept[1].pop(next(iter(kept[1])), None)
        return value
