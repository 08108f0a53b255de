"""What is computed from whole scopes of a store and kept until its entries or vectors change.

The directory of an entry is computed so: that whose abstract and overview stand for the file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from steelyard.base.arrays import Ints
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Readable
from steelyard.stores.federation import MARK

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


class Directories:
    """The directory of every entry of a store; `directory` gives the URI of the one that a URI lies in.

    An entry that has an abstract or an overview is its own directory, and so is one in no directory that has.
    """

    def __init__(self, store: Readable, directory: Callable[[str], str]) -> None:
        self._homes = ScopeCache(store, lambda _: _mapped(store, directory))
        self._kept: tuple[Mapping[str, str], tuple[str, ...], Ints | None] | None = None

    def places(self, ids: tuple[str, ...]) -> Ints | None:
        """Where each entry's directory stands among the ids, int32[n]; its own place where it is not one of them.

        None where every entry is its own. Kept for the next search of the very same ids.
        """
        homes, kept = self._homes(EVERYTHING), self._kept
        if kept is None or kept[0] is not homes or kept[1] is not ids:
            code = {id_: place for place, id_ in enumerate(ids)} if not homes.keys().isdisjoint(ids) else {}
            placed = [code.get(homes.get(id_, id_), place) for id_, place in code.items()]
            self._kept = kept = (homes, ids, np.array(placed, dtype=np.int32) if placed else None)
        return kept[2]


def _mapped(store: Readable, directory: Callable[[str], str]) -> dict[str, str]:
    """The entries that lie in another one, tier by tier, with that one's id."""
    layered: dict[tuple[str, str], str] = {}
    others: list[tuple[str, str, str]] = []
    for id_, uri, has_layers in store.places():
        tier = id_.partition(MARK)[2]
        if has_layers:
            layered.setdefault((uri, tier), id_)
        else:
            others.append((id_, uri, tier))
    homes = ((id_, directory(uri), tier) for id_, uri, tier in others) if layered else ()
    return {id_: layered[home, tier] for id_, home, tier in homes if home and (home, tier) in layered}
