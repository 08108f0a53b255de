"""Several vaults (tiers, each with a priority) that are searched as one store (Soleri's vault manager).

An entry of a federation is named by its id and its tier, `copy_key`; the copies that several tiers hold
of one entry are told apart by it until one of them is left.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, repeat
from typing import TypeVar

import numpy as np

from steelyard.base.arrays import Vectors
from steelyard.base.errors import ConfigError, quote
from steelyard.memory.entry import EVERY_FIELD, Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import (
    COSINE,
    TIER_MARK,
    Edge,
    KeywordIndex,
    ReadableStore,
    RevisionCache,
    ScoredId,
    Space,
    copy_key,
    plain_id,
)
from steelyard.stores.postings import ScopedPostings, WordAnalyzer

Item = TypeVar("Item", Entry, ScoredId)


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
    store: ReadableStore
    priority: float | None = None


class Federation(ReadableStore):
    """See Readable: what the tiers hold, read-only, an id at most once."""

    def __init__(self, tiers: Sequence[Tier], rule: FederationRule | None = None) -> None:
        """Raises ConfigError for no tier, a name empty or used twice, or a priority that is not positive."""
        self.rule = own = rule or FederationRule()
        count, problems = Counter(tier.name for tier in tiers), []
        problems += [f"tier {quote(name)} is named twice" for name in sorted(count) if count[name] > 1]
        problems += ["a tier has no name; write it as TIER=FILE"] if "" in count else []
        problems += [
            f"priority {tier.priority} of {quote(tier.name)} must be above 0 and finite"
            for tier in tiers
            if tier.priority is not None and not 0 < tier.priority < float("inf")
        ]
        if problems or not tiers:
            raise ConfigError("; ".join(problems) or "a federation needs at least one vault")
        self.weights = {
            tier.name: own.priorities.get(tier.name, own.dynamic) if tier.priority is None else tier.priority
            for tier in tiers
        }
        # Tiers of equal priority keep the order in which they were given; under `best_copy` all tiers do.
        self.tiers = sorted(tiers, key=lambda tier: 0.0 if own.best_copy else -self.weights[tier.name])
        self._by_name = {tier.name: tier.store for tier in tiers}
        self.cache = RevisionCache(self)

    def seen_by(self, visible: Filters) -> ReadableStore:
        """See Readable.seen_by: each tier as the caller sees it, so that a hidden copy hides no other one."""
        if not visible:
            return self
        return Federation([replace(tier, store=tier.store.seen_by(visible)) for tier in self.tiers], self.rule)

    # Entries

    def get(self, ids: Sequence[str], fields: Sequence[str] = EVERY_FIELD) -> list[Entry]:
        """See Readable.get; entries are named by copy keys, an id without a tier means the first copy."""
        keys = self._keys(ids)
        by_key = {
            copy_key(entry.id, name): _copy(entry, name)
            for name, tier_ids in _ids_by_tier(keys.values()).items()
            for entry in self._by_name[name].get(tier_ids, fields)
        }
        return [by_key[keys[id_]] for id_ in ids if keys.get(id_) in by_key]

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """See Readable.entries: each entry once, the copy of the first tier that holds it."""
        read = [zip(tier.store.entries(filters), repeat(rank)) for rank, tier in enumerate(self.tiers)]
        every = heapq.merge(*read, key=lambda pair: (pair[0].id, pair[1]))
        for _, copies in groupby(every, key=lambda pair: pair[0].id):
            entry, rank = next(copies)
            # Filters may have left out the copy of the first tier; then no other tier's copy takes its place.
            if not filters or self._stands(rank, [entry.id]):
                yield _copy(entry, self.tiers[rank].name)

    def places(self) -> Iterator[tuple[str, str, bool]]:
        for entry in self.entries():
            if entry.uri or entry.l0 or entry.l1:
                yield entry.id, entry.uri, bool(entry.l0 or entry.l1)

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        by_tier = _ids_by_tier(ids).items()
        return {copy_key(id_, name) for name, part in by_tier for id_ in self._by_name[name].within(part, filters)}

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        by_id: dict[str, Entry] = {}
        for rank, tier in enumerate(self.tiers):
            for entry in self._standing(rank, limit, partial(tier.store.recent, filters)):
                by_id.setdefault(entry.id, _copy(entry, tier.name))
        dated = sorted(by_id.values(), key=lambda e: (e.created_at is None, -(e.created_at or 0.0), e.id))
        return dated[:limit] if limit >= 0 else dated

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """See Readable.edges: those of each tier, between the copies that its relations mean; both ends exist."""
        edges = {edge: None for tier in self.tiers for edge in tier.store.edges([plain_id(id_) for id_ in ids])}
        keys = self._keys({end for edge in edges for end in (edge.source, edge.target)})
        return [
            replace(edge, source=keys[edge.source], target=keys[edge.target])
            for edge in edges
            if edge.source in keys and edge.target in keys
        ]

    def count(self, filters: Filters = EVERYTHING) -> int:
        """See Readable.count: copies of one entry count once."""
        return self.cache.get("count", filters, lambda: sum(1 for _ in self.entries(filters)))

    def covers(self, filters: Filters) -> bool:
        return all(tier.store.covers(filters) for tier in self.tiers)

    def at(self) -> tuple[int, int]:
        falls, revisions = zip(*(tier.store.at() for tier in self.tiers), strict=True)
        return sum(falls), sum(revisions)

    def uncommitted(self) -> bool:
        return any(tier.store.uncommitted() for tier in self.tiers)

    # Searching

    def counted(self, analysis: WordAnalyzer, filters: Filters) -> ScopedPostings:
        """See Readable.counted; of each entry one copy counts."""
        texts = ((entry.id, analysis.read(entry)) for entry in self.entries(filters))
        return self.cache.get("words", (analysis.key, filters), lambda: ScopedPostings.of(texts, self.within))

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[ScoredId]:
        """See Readable.keyword: each tier's best matches, their scores times the tier's priority."""
        each = self.rule.per_tier
        early, late = filters.split(self.rule.after_merge)

        def search(tier: Tier, count: int) -> list[ScoredId]:
            return tier.store.keyword(index, match, weights, early, count if each is None else each)

        return self._merged(depth, search, self.weights, late)

    def nearest(
        self, space: Space, vector: Vectors, filters: Filters, depth: int, filter_first: bool, metric: str = COSINE
    ) -> list[ScoredId]:
        """See Readable.nearest: similarities as they are, whatever the tier."""
        early, late = (filters, EVERYTHING) if filter_first else (EVERYTHING, filters)

        def search(tier: Tier, count: int) -> list[ScoredId]:
            if tier not in self._with_vectors:
                return []
            return tier.store.nearest(space, vector, early, count, True, metric)

        return self._merged(depth, search, dict.fromkeys(self.weights, 1.0), late)

    def expect(self, space: Space, vectors: Sequence[Vectors]) -> None:
        for tier in self._with_vectors:
            tier.store.expect(space, vectors)

    def spaces(self) -> list[tuple[Space, int]]:
        """See Readable.spaces; those of the tiers whose vectors the rule lets be searched."""
        return list(dict.fromkeys(space for tier in self._with_vectors for space in tier.store.spaces()))

    def without_vectors(self, spaces: Sequence[Space]) -> list[str]:
        """See Readable.without_vectors; only of the tiers whose vectors the rule lets be searched."""
        own = ((tier.name, [space for space, _ in tier.store.spaces()]) for tier in self._with_vectors)
        return [f"the tier {quote(name)} has" for name, held in own if set(spaces).isdisjoint(held)]

    def approximate(self, spaces: Sequence[Space]) -> str:
        """See Readable.approximate; of the first tier where it is not empty."""
        return next(filter(None, (tier.store.approximate(spaces) for tier in self._with_vectors)), "")

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        known = {id_ for space in spaces for id_ in self.vectors(space, filters)[0]}
        return [e.id for e in self.entries(filters) if e.id not in known and (e.text or e.details)]

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], Vectors]:
        rows: dict[str, tuple[str, Vectors]] = {}
        for rank, tier in enumerate(self._with_vectors):
            ids, matrix = tier.store.vectors(space, filters)
            kept = self._stands(rank, ids)
            pairs = zip(ids, matrix, strict=True)
            rows = {id_: (copy_key(id_, tier.name), row) for id_, row in pairs if id_ in kept} | rows
        ordered = [rows[id_] for id_ in sorted(rows)]
        matrix = np.array([row for _, row in ordered], dtype=np.float32) if rows else np.zeros((0, 0), np.float32)
        return [key for key, _ in ordered], matrix

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, Vectors]:
        first = self.tiers[0].name
        keys = {i: copy_key(plain_id(i), first) for i in ids} if self.rule.first_vectors else self._keys(ids)
        by_key = {
            copy_key(id_, name): vector
            for name, tier_ids in _ids_by_tier(keys.values()).items()
            for id_, vector in self._by_name[name].vectors_of(space, tier_ids).items()
        }
        return {id_: by_key[key] for id_, key in keys.items() if key in by_key}

    # Inside

    @property
    def _with_vectors(self) -> list[Tier]:
        return self.tiers[:1] if self.rule.first_vectors else self.tiers

    def _keys(self, ids: Iterable[str]) -> dict[str, str]:
        """The copy keys of ids that name a tier of ours, or of which some tier holds a copy: the first one's."""
        keys = {id_: id_ for id_ in ids if id_.partition(TIER_MARK)[2] in self._by_name}
        left = {id_ for id_ in ids if TIER_MARK not in id_}
        for tier in self.tiers if left else []:
            held = tier.store.within(sorted(left), EVERYTHING)
            keys |= {id_: copy_key(id_, tier.name) for id_ in held}
            left -= held
        return keys

    def _merged(
        self,
        depth: int,
        search: Callable[[Tier, int], list[ScoredId]],
        weights: Mapping[str, float],
        late: Filters,
    ) -> list[ScoredId]:
        """What the tiers found, weighted, one copy of each entry, best first, cut to `depth` (below 0: all).

        What does not pass `late` keeps its place, so all is merged and cut before it goes.
        """
        best: dict[str, tuple[float, str]] = {}
        for rank, tier in enumerate(self.tiers):
            for hit in self._standing(rank, depth, partial(search, tier)):
                score = hit.score * weights[tier.name]
                if hit.id not in best or score > best[hit.id][0]:
                    best[hit.id] = (score, copy_key(hit.id, tier.name))
        ordered = sorted(best.values(), key=lambda pair: (-pair[0], pair[1]))[: depth if depth >= 0 else None]
        inside = self.within([key for _, key in ordered], late) if late else {key for _, key in ordered}
        return [ScoredId(key, score, place) for place, (score, key) in enumerate(ordered, 1) if key in inside]

    def _standing(self, rank: int, count: int, read: Callable[[int], list[Item]]) -> list[Item]:
        """What stands of a tier's first items: `count`, if it has so many, because other copies take no place."""
        asked = count
        while True:
            given = read(asked)
            kept = self._stands(rank, [item.id for item in given])
            if asked < 0 or len(kept) >= count or len(given) < asked:
                return [item for item in given if item.id in kept]
            asked *= 2

    def _stands(self, rank: int, ids: Sequence[str]) -> set[str]:
        """Which entries of a tier are kept: what no tier before it holds, or all where the best copy wins."""
        left = set(ids)
        for tier in [] if self.rule.best_copy else self.tiers[:rank]:
            left -= tier.store.within(sorted(left), EVERYTHING)
        return left


def _copy(entry: Entry, tier: str) -> Entry:
    return replace(entry, id=copy_key(entry.id, tier))


def _ids_by_tier(keys: Iterable[str]) -> dict[str, list[str]]:
    by_tier = defaultdict[str, list[str]](list)
    for key in keys:
        id_, _, tier = key.partition(TIER_MARK)
        by_tier[tier].append(id_)
    return by_tier
