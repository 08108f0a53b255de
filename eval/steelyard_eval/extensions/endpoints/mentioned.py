"""The entries that an answer names: by their ids, or by a title or text that only one entry has.

Programs show their agents less than a whole id, or another name: the first characters, a title, a path. Such a
name counts where it is one entry's and no other's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from steelyard.memory.entry import Entry
from steelyard_eval.common.markup import counted
from steelyard_eval.extensions.endpoints.answer_form import LONGEST_TEXT, MANY, Results

SHORTEST = 8
"""Characters of an id, or of its beginning, that is looked for in prose or taken for a whole one."""
_WORD = re.compile(rf"[^\s\"'`,;|<>()\[\]{{}}*]{{{SHORTEST},{LONGEST_TEXT}}}")


class Mentioned:
    """The names of a corpus; `notices` count what was matched otherwise than by ids."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._by: dict[str, int] = {}
        self._silent = 0
        self._known = {entry.id for entry in entries}

    @property
    def notices(self) -> list[str]:
        """How many places were matched by what, and how many by nothing."""
        by = [f"{count} by {what}" for what, count in self._by.items() if what]
        notices = (
            [f"places of its lists were found in the corpus by other names than ids: {', '.join(by)}"]
            if by
            else []
        )
        if none := self._by.get("", 0):
            notices.append(f"{none} places of its lists name no entry of the corpus, and count as not relevant")
        if self._silent:
            notices.append(f"{counted(self._silent, 'answer')} in prose, in which the id of no entry stands")
        return notices

    def matched(self, results: Results) -> Results:
        """The results with the ids of the corpus; what is none of them stays as it is."""
        return [
            (self.named(hit[0]) or hit[0], hit[1]) if isinstance(hit, tuple) else self.named(hit) or hit
            for hit in results
        ]  # type: ignore[return-value]  # all are pairs, or none is

    def in_text(self, text: str) -> list[str]:
        """The entries whose ids, or the beginnings of them, stand in a text, in the order in which they do."""
        words = (word.strip(".:!?#") for word in _WORD.findall(text))
        ids = dict.fromkeys(id_ for word in words if (id_ := self._whole(word)))
        self._silent += not ids
        return list(ids)[:MANY]

    def named(self, name: str) -> str | None:
        """The id of the one entry that has this id or name, or whose id begins with it; None for none."""
        if name in self._known:
            return name
        what, id_ = self._others.get(name, ("", ""))
        if not id_ and (whole := self._whole(name)):
            what, id_ = "the beginning of an id", whole
        self._by[what] = self._by.get(what, 0) + 1
        return id_ or None

    def _whole(self, word: str) -> str | None:
        """The one entry whose id is the word, or begins with it."""
        if word in self._known or len(word) < SHORTEST:
            return word if word in self._known else None
        begin = bisect_left(self._sorted, word)  # the ids that begin with it follow one another from here on
        fitting = [id_ for id_ in self._sorted[begin : begin + 2] if id_.startswith(word)]
        return fitting[0] if len(fitting) == 1 else None

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._known)

    @cached_property
    def _others(self) -> dict[str, tuple[str, str]]:
        """Other names of one entry alone: what it is called by, and its id."""
        others: dict[str, tuple[str, str]] = {}
        twice = set()
        for entry in self._entries:
            for name, what in _names(entry):
                if others.get(name, ("", entry.id))[1] != entry.id:
                    twice.add(name)
                others.setdefault(name, (what, entry.id))
        return {name: other for name, other in others.items() if name not in twice}


def _names(entry: Entry) -> list[tuple[str, str]]:
    """What may stand for an entry beside its id."""
    pairs: list[tuple[Any, str]] = [(entry.uri, "uri"), (entry.title, "title")]
    pairs += [(entry.extra.get(name), name) for name in ("name", "item_key", "permalink", "file_path", "path")]
    return [(name, what) for name, what in pairs if isinstance(name, str) and name]
