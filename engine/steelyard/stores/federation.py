"""Several vaults read as one: tiers with priorities, each entry of one of them (Soleri's vault manager).

An entry of a federation is named by its id and its tier, `copy_key`; the copies that several tiers hold
of one entry are told apart by it until one of them is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from steelyard.entry import Entry
from steelyard.errors import ConfigError, shown
from steelyard.filters import EVERYTHING, Filters
from steelyard.stores.base import Found, KeywordIndex, Readable, Space
from steelyard.stores.schema import COLUMNS

MARK = "\x1f"
"""Between id and tier; a white-space character, so no id of a data set holds it."""


def copy_key(id_: str, tier: str) -> str:
    """The name of one copy; copies sort by id first, so that ties are by id."""
    return f"{id_}{MARK}{tier}"


def plain_id(key: str) -> str:
    """The id of a copy; any other id is itself."""
    return key.partition(MARK)[0]


def plain(entry: Entry) -> Entry:
    """The entry under its own id, with its tier as `vault`; as it is when it is no copy."""
    id_, mark, tier = entry.id.partition(MARK)
    return replace(entry, id=id_, vault=tier) if mark else entry


@dataclass(frozen=True)
class FederationRule:
    """How a system treats several vaults.

    `priorities` are the tiers' weights by name, `dynamic` that of any other vault. Of an entry that
    several tiers hold, the copy of the highest priority stands, whatever was found of it; with
    `best_copy` it is the copy that was found with the highest weighted score. `per_tier` is how many
    matches each tier gives to keyword search (None: as many as are asked for). Filters on the fields of
    `after_merge` act on the merged list of that search, after its cut, so that it may be short; all others
    act in every tier. With `first_vectors` only the first tier's vectors are searched.
    """

    priorities: Mapping[str, float] = field(default_factory=lambda: {"agent": 1.0, "project": 0.8, "team": 0.6})
    dynamic: float = 0.5
    best_copy: bool = False
    per_tier: int | None = None
    first_vectors: bool = False
    after_merge: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tier:
    """One vault of a federation; `priority` None is that of the rule for its name."""

    name: str
    store: Readable
    priority: float | None = None


class Federation:
    """See Readable: what the tiers hold, read-only, an id at most once."""

    def __init__(self, tiers: Sequence[Tier], rule: FederationRule | None = None) -> None:
        """Raises ConfigError for no tier, a name used twice, or a priority that is not positive."""
        self.rule = rule or FederationRule()
        names = [tier.name for tier in tiers]
        problems = [
            f"tier {shown(name)} is named twice" for name in sorted({n for n in names if names.count(n) > 1})
        ]
        problems += [
            f"priority {tier.priority} of {shown(tier.name)} must be above 0 and finite"
            for tier in tiers
            if tier.priority is not None and not 0 < tier.priority < float("inf")
        ]
        if problems or not tiers:
            raise ConfigError("; ".join(problems) or "a federation needs at least one vault")
        weighed = [(tier, self._weight(tier)) for tier in tiers]
        self.weights = {tier.name: weight for tier, weight in weighed}
        # Ties of priority, and everything where the best copy stands, are in the order given.
        self.tiers = list(tiers)
        if not self.rule.best_copy:
            self.tiers = [tier for tier, weight in sorted(weighed, key=lambda pair: -pair[1])]
        self._by_name = {tier.name: tier.store for tier in tiers}

    def _weight(self, tier: Tier) -> float:
        known = self.rule.priorities.get(tier.name, self.rule.dynamic)
        return known if tier.priority is None else tier.priority

    # Entries

    def get(self, ids: Sequence[str], fields: Sequence[str] = COLUMNS) -> list[Entry]:
        """See Readable.get; ids are copy keys, and so are those of the entries."""
        found: dict[str, Entry] = {}
        for name, own in _by_tier(ids).items():
            for entry in self._by_name[name].get(own, fields):
                found[copy_key(entry.id, name)] = _copy(entry, name)
        return [found[key] for key in ids if key in found]

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Readable.entries: each entry once, the copy of the first tier that holds it."""
        every = heapq.merge(*(_ranked(at, tier, filters) for at, tier in enumerate(self.tiers)), key=_place)
        for _, copies in groupby(every, key=lambda item: item[0]):
            _, at, entry = next(iter(copies))
            # Without filters the first copy is that of the first tier; with them that one may have been left out.
            if not filters or self._stands(at, [entry.id]):
                yield _copy(entry, self.tiers[at].name)

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """See Readable.recent."""
        found = []
        for at, tier in enumerate(self.tiers):
            newest = tier.store.recent(filters, limit)
            kept = self._stands(at, [entry.id for entry in newest])
            found += [_copy(entry, tier.name) for entry in newest if entry.id in kept]
        dated = sorted(found, key=lambda e: (e.created_at is None, -(e.created_at or 0.0), e.id))
        return dated[:limit]

    def count(self, filters: Filters = EVERYTHING) -> int:
        """See Readable.count: copies of one entry count once."""
        return sum(1 for _ in self.entries(filters))

    def revision(self) -> int:
        """See Readable.revision."""
        return sum(tier.store.revision() for tier in self.tiers)

    # Searching

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """See Readable.keyword: each tier's best matches, their scores times the tier's priority."""
        each = depth if self.rule.per_tier is None else self.rule.per_tier
        early, late = filters.split(self.rule.after_merge)
        found = self._merged(
            depth, lambda tier: tier.store.keyword(index, match, weights, early, each), self.weights
        )
        return self._admitted(found, late) if late else found

    def nearest(
        self, space: Space, vector: NDArray[np.float32], filters: Filters, depth: int, filter_first: bool
    ) -> list[Found]:
        """See Readable.nearest: similarities as they are, whatever the tier."""
        searched = self.tiers[:1] if self.rule.first_vectors else self.tiers

        def search(tier: Tier) -> list[Found]:
            return tier.store.nearest(space, vector, filters, depth, filter_first) if tier in searched else []

        return self._merged(depth, search, dict.fromkeys(self.weights, 1.0))

    def spaces(self) -> list[tuple[Space, int]]:
        """See Readable.spaces."""
        return list(dict.fromkeys(found for tier in self.tiers for found in tier.store.spaces()))

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], NDArray[np.float32]]:
        """See Readable.vectors."""
        rows: list[tuple[str, NDArray[np.float32]]] = []
        for at, tier in enumerate(self.tiers):
            ids, matrix = tier.store.vectors(space, filters)
            kept = self._stands(at, ids)
            rows += [(copy_key(id_, tier.name), row) for id_, row in zip(ids, matrix, strict=True) if id_ in kept]
        rows.sort(key=lambda pair: pair[0])
        matrix = np.array([row for _, row in rows], dtype=np.float32) if rows else np.zeros((0, 0), np.float32)
        return [key for key, _ in rows], matrix

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See Readable.vectors_of."""
        if self.rule.first_vectors:
            keys = {key.partition(MARK)[0]: key for key in ids}
            found = self.tiers[0].store.vectors_of(space, list(keys))
            return {keys[id_]: vector for id_, vector in found.items()}
        vectors = {}
        for name, own in _by_tier(ids).items():
            for id_, vector in self._by_name[name].vectors_of(space, own).items():
                vectors[copy_key(id_, name)] = vector
        return vectors

    # Inside

    def _merged(
        self, depth: int, search: Callable[[Tier], list[Found]], weights: Mapping[str, float]
    ) -> list[Found]:
        """What the tiers found, weighted, one copy of each entry, best first, cut to `depth` (below 0: all)."""
        best: dict[str, tuple[float, str]] = {}
        for at, tier in enumerate(self.tiers):
            found = search(tier)
            kept = self._stands(at, [hit.id for hit in found])
            for hit in found:
                score = hit.score * weights[tier.name]
                if hit.id in kept and (hit.id not in best or score > best[hit.id][0]):
                    best[hit.id] = (score, copy_key(hit.id, tier.name))
        ordered = sorted(best.values(), key=lambda pair: (-pair[0], pair[1]))[: depth if depth >= 0 else None]
        return [Found(key, score, place) for place, (score, key) in enumerate(ordered, 1)]

    def _admitted(self, found: list[Found], filters: Filters) -> list[Found]:
        """Those in scope, in their old places."""
        copies = self.get([hit.id for hit in found], self.rule.after_merge)
        inside = {entry.id for entry in copies if not filters.failed(entry)}
        return [hit for hit in found if hit.id in inside]

    def _stands(self, at: int, ids: Sequence[str]) -> set[str]:
        """Those of the entries of one tier that no tier before it holds; all, where the best copy stands."""
        left = set(ids)
        for tier in [] if self.rule.best_copy else self.tiers[:at]:
            left -= {entry.id for entry in tier.store.get(sorted(left), ())}
        return left


def _copy(entry: Entry, tier: str) -> Entry:
    return replace(entry, id=copy_key(entry.id, tier))


def _ranked(at: int, tier: Tier, filters: Filters) -> Iterator[tuple[str, int, Entry]]:
    return ((entry.id, at, entry) for entry in tier.store.entries(filters))


def _place(item: tuple[str, int, Entry]) -> tuple[str, int]:
    return item[0], item[1]


def _by_tier(keys: Iterable[str]) -> dict[str, list[str]]:
    """Ids by the tier their keys name."""
    found: dict[str, list[str]] = {}
    for key in keys:
        id_, _, tier = key.partition(MARK)
        found.setdefault(tier, []).append(id_)
    return found
