"""The one cache of a store: what was read or computed of it is kept between calls until the store changes."""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
Renew = Callable[[int, T], T]
ReadMany = Callable[[list[Key]], Mapping[Key, T]]
SCOPES = 64
"""Values of a kind that are kept where nothing else is said; queries with a clock have a scope each."""


class _Held(NamedTuple):
    at: tuple[int, int]
    value: Any
    lasting: bool
    """Whether it can be brought up to date."""


class RevisionCache:
    """Values by kind and key, each with the state of the store that it is of. Threads may share it.

    Once the store has changed, a value is brought up to date where its kind can be, and else forgotten; all are
    where the store went back to an older state, because its revisions come again. Of each kind as many are kept
    as whoever asks says, and the first kept is the first to go. Nothing is kept for a thread that has written what
    is not committed, or reads an older state than others do. At worst two make one value.
    """

    def __init__(self, store: Any) -> None:  # noqa: ANN401 -- a Readable, which names this class
        self._store = weakref.ref(store)  # which holds this: in a circle it would outlive whoever opened it
        self._newest = 0, -1
        self._held: defaultdict[str, dict[Hashable, _Held]] = defaultdict(dict)
        self._changing = threading.Lock()

    def get(
        self, kind: str, key: Hashable, make: Callable[[], T], most: int = SCOPES, renew: Renew[T] | None = None
    ) -> T:
        """The value under a key, made now where none is kept; `renew` makes it of the one of an older revision."""
        store = self._store()
        if store is None or store.uncommitted():
            return make()
        now = store.at()
        if now > self._newest:
            self._forget(now)
        held = self._held[kind].get(key)
        if held is not None and held.at == now:
            return cast("T", held.value)
        older = held is not None and held.at < now
        value = renew(held.at[1], held.value) if renew and held and older else make()
        with self._changing:
            if now == self._newest:
                self._held[kind][key] = _Held(now, value, renew is not None)
                _shorten(self._held[kind], most)
        return value

    def many(
        self, kind: str, key: Hashable, wanted: Sequence[Key], read: ReadMany[Key, T], most: int
    ) -> dict[Key, T]:
        """Those of the wanted things that there are, of one value; `read` gives those that are not kept."""
        known: dict[Key, T] = self.get(kind, key, dict)
        found = {one: value for one in wanted if (value := known.get(one)) is not None}
        if len(found) < len(wanted) and (unknown := [one for one in wanted if one not in found]):
            new = read(unknown)
            found.update(new)
            with self._changing:
                known.update(new)
                _shorten(known, most)
        return found

    def holds(self, kind: str, key: Hashable) -> bool:
        """Whether something is kept under a key, perhaps of an older revision."""
        return key in self._held[kind]

    def _forget(self, now: tuple[int, int]) -> None:
        with self._changing:
            if now > self._newest:
                fell, self._newest = now[0] > self._newest[0], now
                for values in list(self._held.values()):  # threads add kinds
                    for key in [key for key, held in values.items() if fell or not held.lasting]:
                        del values[key]


def _shorten(values: dict[Any, Any], most: int) -> None:
    """Let the first ones go."""
    for key in list(islice(values, max(0, len(values) - most))):
        del values[key]
