"""Finds entries with the same content, and queries with the same text, under different ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.systems.soleri import content_hash
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.groups import wording

_GROUPS_SHOWN = 3
_IDS_SHOWN = 5


def duplicates(entries: Iterable[Entry]) -> list[list[str]]:
    """List the ids of entries with the same content, one list for each content, in the order of the entries.

    The content is what Soleri compares: title, text, type, domain, tags in any order and examples, without
    white space around them. Entries without title and text are never duplicates.

    >>> duplicates([Entry("a", title="x"), Entry("b", title="y"), Entry("c", title=" x ")])
    [['a', 'c']]
    """
    titled = (entry for entry in entries if entry.title.strip() or entry.text.strip())
    return _repeated((content_hash(entry), entry.id) for entry in titled)


def asked_again(queries: Iterable[Query]) -> list[list[str]]:
    """List the ids of queries that ask the same (`groups.wording`), in the order of the queries."""
    return _repeated((wording(query.text), query.id) for query in queries)


def _repeated(keys: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The ids of every key that has several."""
    groups: dict[str, list[str]] = {}
    for key, id_ in keys:
        groups.setdefault(key, []).append(id_)
    return [ids for ids in groups.values() if len(ids) > 1]


def duplicates_in_words(groups: Sequence[Sequence[str]]) -> str:
    """Describe duplicates in one line, with their number and the first of them; empty when there are none."""
    return _in_words(groups, ("entry repeats", "entries repeat"), "the content of another")


def asked_again_in_words(groups: Sequence[Sequence[str]]) -> str:
    """The same of queries that ask the same."""
    return _in_words(
        groups, ("query repeats", "queries repeat"), "the text of another, and equal texts count once"
    )


def _in_words(groups: Sequence[Sequence[str]], words: tuple[str, str], what: str) -> str:
    if not groups:
        return ""
    repeat = counted(sum(len(ids) - 1 for ids in groups), *words)
    listed = "; ".join(_ids(ids) for ids in groups[:_GROUPS_SHOWN])
    return f"{repeat} {what}: {listed}{'; ...' if len(groups) > _GROUPS_SHOWN else ''}"


def _ids(ids: Sequence[str]) -> str:
    more = ", ..." if len(ids) > _IDS_SHOWN else ""
    return ", ".join(shown(id_, 60) for id_ in ids[:_IDS_SHOWN]) + more
