"""Which entry's abstract and overview stand for an entry: those of the folder that its file lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from steelyard.entry import Entry
from steelyard.filters import EVERYTHING
from steelyard.retrievers.cache import ScopeCache
from steelyard.stores.base import Readable
from steelyard.stores.federation import MARK


class Directories:
    """The directory of every entry of a store; `directory` gives the URI of the one that a URI lies in.

    An entry that has an abstract or an overview is its own directory, and so is one in no directory that has.
    """

    def __init__(self, store: Readable, directory: Callable[[str], str]) -> None:
        self._directory = directory
        self._homes = ScopeCache(store, lambda filters: self._mapped(store.entries(filters)))

    def of(self, ids: Sequence[str]) -> list[str]:
        """The id of the directory of each of these entries."""
        homes = self._homes(EVERYTHING)
        return [homes.get(id_, id_) for id_ in ids] if homes else list(ids)

    def _mapped(self, entries: Iterable[Entry]) -> dict[str, str]:
        """The entries that lie in another one, tier by tier, with that one's id."""
        layered: dict[tuple[str, str], str] = {}
        others: list[tuple[str, str, str]] = []
        for entry in entries:
            tier = entry.id.partition(MARK)[2]
            if entry.l0 or entry.l1:
                layered.setdefault((entry.uri, tier), entry.id)
            elif entry.uri:
                others.append((entry.id, self._directory(entry.uri), tier))
        return {id_: layered[uri, tier] for id_, uri, tier in others if uri and (uri, tier) in layered}
