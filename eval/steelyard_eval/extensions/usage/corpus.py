"""What the data set knows of the entries that logs name."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.memory.entry import Entry
from steelyard_eval.extensions.endpoints.mentioned import Mentioned

FILES = ("related_files", "files_modified", "files", "applies_to")
"""What programs call the files that an entry is about."""


class Corpus:
    """The entries, which are found by whatever `names` one of them alone."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.names = Mentioned(entries)
        self._by_id = {entry.id: entry for entry in entries}

    def title(self, id_: str) -> str:
        """The title of an entry."""
        return self._by_id[id_].title

    def texts(self, id_: str) -> list[str]:
        """What an entry says."""
        entry = self._by_id[id_]
        return [entry.text, entry.why, entry.impact, entry.details, entry.context, entry.l1]

    def files(self, id_: str) -> list[str]:
        """The files that an entry is about."""
        named = [self._by_id[id_].extra.get(name) for name in FILES]
        paths = [path for value in named if isinstance(value, list) for path in value if isinstance(path, str)]
        return [path for path in paths if "/" in path or "." in path]
