"""A store as one caller sees it: it holds the entries that this caller may see, as if there were no others.

FTS5 and TF-IDF count words over all entries they hold, and an entry may supersede another one. So what a caller
may see is copied into a vault in memory, and that is searched: no number, order or message depends on more.
The copy is kept until the store changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, cast

from steelyard.base.errors import ConfigError
from steelyard.memory.filters import SUPERSEDED, Filters
from steelyard.stores.base import Readable

READ = frozenset(name for name in vars(Readable) if not name.startswith("_"))
"""What can be asked of a store that is read."""


class Whole(Readable, Protocol):
    """A store that can be copied in part, as a vault can."""

    def copied(self, visible: Filters) -> tuple[int, Readable]:
        """The revision that was copied, and the entries of it that `visible` admits as a store of their own."""


class ScopedStore:
    """See Readable: the entries of a vault that `visible` admits. Threads may share it.

    Raises ConfigError for a scope that asks whether entries are superseded: that depends on all of them.
    """

    def __init__(self, vault: Whole, visible: Filters) -> None:
        if any(rule.field == SUPERSEDED for clause in visible.clauses for rule in clause):
            raise ConfigError("a scope cannot ask for superseded entries; filter by that instead")
        self._vault, self._visible = vault, Filters(visible.clauses)
        self._building = threading.Lock()
        self._copied: tuple[int, Readable] | None = None

    def _seen(self) -> Readable:
        """The copy of what is visible now."""
        known = self._copied
        if known is None or known[0] != self._vault.revision():
            with self._building:
                known = self._copied = self._vault.copied(self._visible)
        return known[1]

    def seen_by(self, visible: Filters) -> Readable:
        """See Readable.seen_by."""
        return cast(Readable, ScopedStore(self._vault, self._visible & Filters(visible.clauses)))

    def revision(self) -> int:
        """See Readable.revision: that of the vault, at which it is copied again."""
        return self._vault.revision()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Everything else that is read, asked of the copy each time; what would write is not there."""
        if name not in READ:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return lambda *values, **options: getattr(self._seen(), name)(*values, **options)
