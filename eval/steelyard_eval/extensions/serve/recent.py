"""What a client was shown lately, and which acts follow from what it asks for next.

Agents hardly ever give feedback, but they open what they use, and quote it: an entry that is read after a list
showed it was opened, and one whose id stands in the next query was cited.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

MOST = 64
"""Lists of a client that are remembered."""
QUOTED = 8
"""Lists whose ids are looked for in the next query."""
SHORTEST = 8
"""Characters of an id that is recognised in a query; they are not all letters, as those of words are."""
_WORD = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")


@dataclass
class ShownList:
    """One list, with the entries that were acted upon already."""

    query_id: str
    text: str
    ids: frozenset[str]
    used: set[tuple[str, str]] = field(default_factory=set)


class Recent:
    """The newest lists of one client; threads may share it."""

    def __init__(self) -> None:
        self._lists: deque[ShownList] = deque(maxlen=MOST)
        self._turn = threading.Lock()

    def shown(self, query_id: str, text: str, ids: Sequence[str]) -> None:
        """Remember a list."""
        with self._turn:
            self._lists.appendleft(ShownList(query_id, text, frozenset(ids)))

    def knows(self, query_id: str) -> bool:
        """Whether a list is remembered."""
        with self._turn:
            return any(listed.query_id == query_id for listed in self._lists)

    def newest(self, entry_id: str, text: str | None = None, once: str = "", most: int = MOST) -> str:
        """The newest list that showed an entry, of a query where one is given; empty where there is none.

        Of an act that counts `once` it is empty, too, where that was asked for before.
        """
        with self._turn:
            for listed in islice(self._lists, most):
                if entry_id in listed.ids and text in (None, listed.text):
                    if once and (entry_id, once) in listed.used:
                        return ""
                    listed.used |= {(entry_id, once)} if once else set()
                    return listed.query_id
        return ""

    def quoted(self, text: str) -> list[tuple[str, str]]:
        """The lists and entries whose ids stand in the next query, each once."""
        words = _WORD.findall(text)
        names = {word for word in (*words, *(word.strip(".:!?#") for word in words)) if len(word) >= SHORTEST}
        ids = [name for name in sorted(names) if not name.isalpha()]
        pairs = ((self.newest(name, once="cited", most=QUOTED), name) for name in ids)
        return [(query_id, name) for query_id, name in pairs if query_id]
