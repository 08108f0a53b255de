"""Search along relations: activation spreads from what other retrievers found (Collins and Loftus, 1975)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Ints
from steelyard.base.files import data
from steelyard.memory.query import Query
from steelyard.node import Option
from steelyard.retrievers.kinds import RetrieverKind
from steelyard.stores.base import TIER_MARK, ReadableStore, ScoredId

EDGE_STRENGTHS: dict[str, float] = data(__package__, "graph.json")
"""What an edge of each type passes on, times its own strength, 0..1 (1 where none is given); `related` is
co-activation, whose own strength says how similar two are. Source: the weights of the code of system-spec-kit."""
OTHER = 0.5
"""What an edge of any other type passes on."""
STARTS = "How many of the first places of each list before it the search starts from"
SEEDS = Option("seeds", 5, 1, 100, STARTS, (3, 10))
HOPS = Option("hops", 2, 1, 10, "How many relations a path may have", (1, 3))
DECAY = Option(
    "decay", 0.5, 0, 1, "What is left of an activation after each relation, times its strength", (0.3, 0.8)
)
MIN_ACTIVATION = Option("least", 0.01, 0, 1, "The activation below which nothing is found")
AGAIN = Option("again", 1, 0, 1, "1: an entry that the search starts from is found where another leads to it")
WAYS = "By decay and strength, or hops: 1 / (1 + relations of the path), whatever they are"
FADING = Option("fading", "strength", kind="word", words=("strength", "hops"), text=WAYS, quiet=True)
FAN = Option("fan", 5, 1, 1000, "How many relations of an entry are followed, the strongest first")

Near = dict[str, list[tuple[float, str]]]
"""Entries with what their edges lead to: (strength, target), best first."""


@dataclass(frozen=True)
class GraphRetriever:
    """Entries that relations lead to from the seeds, by the strongest path.

    A seed has the activation 1; a neighbour has ``activation * decay * strength`` of the edge, in either
    direction, or 1 / (1 + hops) with the `fading` of that name. A seed is found where another one leads to it,
    unless `again` is 0. Only entries in the query's scope are found, or passed through.
    """

    store: ReadableStore
    seeds: float
    hops: float
    decay: float
    least: float
    fan: float
    again: float = 1
    fading: str = "strength"

    def follow(
        self, query: Query, depth: int | None, lists: Mapping[str, Sequence[ScoredId]], known: Near | None = None
    ) -> list[ScoredId]:
        """As `Retriever.retrieve`; `lists` are those that it starts from.

        `known` has entries whose edges were read before in this scope, and takes others.
        """
        start = sorted({hit.id for hits in lists.values() for hit in hits if hit.position <= self.seeds})
        edges = self._edges(query, start, {} if known is None else known)
        best: dict[str, float] = {}
        for seed in start:
            for id_, activation in self._spread(seed, edges).items():
                if id_ != seed and (int(self.again) or id_ not in start):
                    best[id_] = max(activation, best.get(id_, 0.0))
        ranked = sorted(best, key=lambda id_: (-best[id_], id_))
        return [ScoredId(id_, best[id_], place) for place, id_ in enumerate(ranked[:depth], 1)]

    def _spread(self, seed: str, edges: Mapping[str, Sequence[tuple[float, str]]]) -> dict[str, float]:
        """The activation of every entry that relations lead to from one seed."""
        active, reached = {seed: 1.0}, {seed: 1.0}
        for hop in range(int(self.hops)):
            further: dict[str, float] = {}
            for here, activation in active.items():
                for part, there in edges.get(here, ()):
                    value = 1 / (hop + 2) if self.fading == "hops" else activation * self.decay * part
                    if value >= self.least and value > max(reached.get(there, 0.0), further.get(there, 0.0)):
                        further[there] = value
            active = further
            reached |= active
        return reached

    def _edges(self, query: Query, start: Sequence[str], known: Near) -> Near:
        """(strength, target) of the strongest edges of all entries within reach, best first."""
        edges: Near = {}
        front = set(start)
        for _ in range(int(self.hops)):
            near: dict[str, dict[str, float]] = {id_: {} for id_ in sorted(front - known.keys())}
            for edge in self.store.edges(list(near)) if near else ():
                stated = 1.0 if edge.strength is None else min(max(edge.strength, 0.0), 1.0)
                part = EDGE_STRENGTHS.get(edge.type, OTHER) * stated
                for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                    if here in near and here != there:
                        near[here][there] = max(part, near[here].get(there, 0.0))
            ends = {there for parts in near.values() for there in parts}
            inside = self.store.within(sorted(ends), query.filters) if ends else ()
            for here, parts in near.items():
                best = sorted((-part, there) for there, part in parts.items() if there in inside)
                known[here] = [(-part, there) for part, there in best]
            edges |= {here: known[here][: int(self.fan)] for here in front}
            front = {there for here in front for _, there in edges[here]} - edges.keys()
        return edges


GRAPH: RetrieverKind = RetrieverKind(
    name="graph",
    build=lambda parts, settings: GraphRetriever(parts.store, **GRAPH.values(settings)),
    after=("vector", "bm25", "fts"),
    starts="seeds",
    parameters=(SEEDS, HOPS, DECAY, MIN_ACTIVATION, FAN, AGAIN, FADING),
)


def directories(store: ReadableStore, directory: Callable[[str], str], ids: tuple[str, ...]) -> Ints | None:
    """Where each entry's directory stands among the ids, int32[n]; its own place where it is not one of them.

    None where every entry is its own. `directory` gives the URI of the one that a URI lies in. An entry that has
    an abstract or an overview is its own directory, and so is one in no directory that has.
    """

    def placed() -> Ints | None:
        homes = store.cache.get("homes", directory, lambda: _homes(store, directory))
        code = {id_: place for place, id_ in enumerate(ids)} if not homes.keys().isdisjoint(ids) else {}
        places = [code.get(homes.get(id_, id_), place) for id_, place in code.items()]
        return np.array(places, dtype=np.int32) if places else None

    return store.cache.get("directories", (directory, ids), placed, most=1)


def _homes(store: ReadableStore, directory: Callable[[str], str]) -> dict[str, str]:
    """The entries that lie in another one, tier by tier, with that one's id."""
    places = [(id_, uri, id_.partition(TIER_MARK)[2], layered) for id_, uri, layered in store.places()]
    named = {(uri, tier): id_ for id_, uri, tier, layered in reversed(places) if layered}
    files = [(id_, uri, tier) for id_, uri, tier, layered in places if named and not layered]
    homes = ((id_, (directory(uri), tier)) for id_, uri, tier in files)
    return {id_: named[home] for id_, home in homes if home[0] and home in named}
