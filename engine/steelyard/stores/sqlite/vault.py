"""A vault: one SQLite file with entries, FTS5 indexes, sqlite-vec tables and fitted models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import cast
from weakref import WeakValueDictionary

from steelyard.memory.entry import Entry
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.memory.names import named, naming
from steelyard.stores.base import Readable
from steelyard.stores.scoped import ScopedStore
from steelyard.stores.sqlite.connect import MEMORY
from steelyard.stores.sqlite.entries import EntryTable
from steelyard.stores.sqlite.keywords import KeywordTables
from steelyard.stores.sqlite.models import ModelTable
from steelyard.stores.sqlite.nearest import NearestSearch
from steelyard.stores.sqlite.schema import COLUMNS

AT_ONCE = 1000
"""Entries whose names are looked up together."""


class Vault(EntryTable, KeywordTables, NearestSearch, ModelTable):
    """A store in one SQLite file, or in memory with the path ``:memory:``. Threads may share it.

    Every thread has a connection of its own, so readers do not wait for each other, nor for a writer of a
    file. A transaction and a snapshot are those of the thread that began them; what other threads read
    meanwhile is what was committed. Between two calls without a snapshot others may have written.

    Unless it is to be created, a file that cannot be written, or lies in a folder that cannot be, is
    opened for reading; the first write then raises MachineError.
    """

    restricted = False
    """Whether who opened it sees a part of it alone, by rules that it does not decide."""

    @property
    def models_revision(self) -> int | None:
        """The revision at which models changed last, where others may change them; None of a file."""
        return None

    def seen_by(self, visible: Filters) -> Readable:
        """See Readable.seen_by; kept for the next one who asks."""
        if not visible and not self.restricted:
            return self
        return cast(Readable, self._views.setdefault(visible, ScopedStore(self, visible)))

    def copied(self, visible: Filters) -> tuple[int, Vault]:
        """The revision, and a vault in memory with the entries that the filters admit and their vectors."""
        admitted = Filters(visible.clauses)
        with self._steady():
            copy = VisiblePart(MEMORY)
            copy.add_rows(self.rows(admitted))
            for space, _ in self.spaces():
                ids, matrix = self.vectors(space, admitted)
                if ids:
                    copy.put_vectors(space, ids, matrix)
            return self.revision(), copy

    @cached_property
    def _views(self) -> WeakValueDictionary[Filters, ScopedStore]:
        return WeakValueDictionary()


class VisiblePart(Vault):
    """What a caller may see of a vault: its entries name no others, whether these are hidden or nowhere.

    The relations themselves stay as they lie: along them a federation reaches entries of its other tiers.
    """

    def get(self, ids: Sequence[str], fields: Sequence[str] = COLUMNS) -> list[Entry]:
        """See Readable.get."""
        return self._own_names(super().get(ids, fields))

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Readable.entries."""
        every = super().entries(filters)
        while some := [*islice(every, AT_ONCE)]:
            yield from self._own_names(some)

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """See Readable.recent."""
        return self._own_names(super().recent(filters, limit))

    def _own_names(self, entries: Sequence[Entry]) -> list[Entry]:
        names = {name for entry in entries for name in named(entry)}
        inside = self.within(sorted(names), EVERYTHING) if names else set()
        return [naming(entry, inside) for entry in entries]
