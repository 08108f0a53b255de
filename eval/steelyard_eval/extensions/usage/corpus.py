"""What the data set knows of what logs name: its entries, and what scores mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.memory.entry import Entry
from steelyard_eval.extensions.endpoints.mentioned import Mentioned


class Corpus:
    """What the data set knows of the entries that a list names, and of `scores` (`Dataset.scores`)."""

    def __init__(self, entries: Sequence[Entry], scores: Mapping[str, str] | None = None) -> None:
        self.names = Mentioned(entries)
        self.scores = scores or {}
        self._by_id = {entry.id: entry for entry in entries}

    def __contains__(self, name: str) -> bool:
        return name in self._by_id

    def title(self, id_: str) -> str:
        """The title of an entry; empty where there is none."""
        return self._by_id[id_].title if id_ in self._by_id else ""

    def texts(self, id_: str) -> Iterator[str]:
        """What an entry says."""
        if (entry := self._by_id.get(id_)) is not None:
            yield from filter(None, (entry.text, entry.why, entry.impact, entry.details, entry.context, entry.l1))

    def files(self, id_: str) -> tuple[str, ...]:
        """The files that an entry is about."""
        return _files(self._by_id[id_]) if id_ in self._by_id else ()


def _files(entry: Entry) -> tuple[str, ...]:
    paths: list[str] = []
    for name in ("related_files", "files_modified", "files", "applies_to"):
        value = entry.extra.get(name)
        paths += [path for path in value if isinstance(path, str)] if isinstance(value, list) else []
    return tuple(path for path in paths if "/" in path or "." in path)
