"""Finds entries with the same content under different ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.systems.soleri import content_hash

_GROUPS_SHOWN = 3
_IDS_SHOWN = 5


def duplicates(entries: Iterable[Entry]) -> list[list[str]]:
    """List the ids of entries with the same content, one list for each content, in the order of the entries.

    The content is what Soleri compares: title, text, type, domain, tags in any order and examples, without
    white space around them. Entries without title and text are never duplicates.

    >>> duplicates([Entry("a", title="x"), Entry("b", title="y"), Entry("c", title=" x ")])
    [['a', 'c']]
    """
    groups: dict[str, list[str]] = {}
    for entry in entries:
        if entry.title.strip() or entry.text.strip():
            groups.setdefault(content_hash(entry), []).append(entry.id)
    return [ids for ids in groups.values() if len(ids) > 1]


def duplicates_in_words(groups: Sequence[Sequence[str]]) -> str:
    """Describe duplicates in one line, with their number and the first of them; empty when there are none."""
    if not groups:
        return ""
    extra = sum(len(ids) - 1 for ids in groups)
    repeat = "1 entry repeats" if extra == 1 else f"{extra} entries repeat"
    listed = "; ".join(_ids(ids) for ids in groups[:_GROUPS_SHOWN])
    return f"{repeat} the content of another: {listed}{'; ...' if len(groups) > _GROUPS_SHOWN else ''}"


def _ids(ids: Sequence[str]) -> str:
    more = ", ..." if len(ids) > _IDS_SHOWN else ""
    return ", ".join(shown(id_, 60) for id_ in ids[:_IDS_SHOWN]) + more
