"""Search along relations: activation spreads from what other retrievers found (Collins and Loftus, 1975)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.query import Query
from steelyard.retrievers.kinds import Parameter, Parts, RetrieverConfig, RetrieverKind
from steelyard.stores.base import Edge, Found, Readable

STRENGTHS = {
    "caused": 1.0,
    "derived_from": 0.9,
    "enabled": 0.8,
    "contradicts": 0.7,
    "supersedes": 0.6,
    "supports": 0.5,
    "related": 1.0,
}
"""What an edge of each type passes on; `related` is co-activation, whose own strength says how similar two are.
Source: the weights of the code of system-spec-kit."""
OTHER = 0.5
"""What an edge of any other type passes on."""
SEEDS = Parameter("seeds", 5, 1, 100, "How many of the first places of each list before it the search starts from")
HOPS = Parameter("hops", 2, 1, 10, "How many relations a path may have")
DECAY = Parameter("decay", 0.5, 0, 1, "What is left of an activation after each relation, times its strength")
LEAST = Parameter("least", 0.01, 0, 1, "The activation below which nothing is found")
FAN = Parameter("fan", 5, 1, 1000, "How many relations of an entry are followed, the strongest first")


@dataclass(frozen=True)
class GraphRetriever:
    """Entries that relations lead to from the seeds, by the strongest path.

    A seed has the activation 1; a neighbour has ``activation * decay * strength`` of the edge, in either
    direction. Seeds are not returned. Only entries in the query's scope are found, or passed through.
    """

    store: Readable
    seeds: int
    hops: int
    decay: float
    least: float
    fan: int

    def follow(self, query: Query, depth: int | None, lists: Mapping[str, Sequence[Found]]) -> list[Found]:
        """See Dependent.follow."""
        start = {hit.id for own in lists.values() for hit in own if hit.position <= self.seeds}
        active = dict.fromkeys(sorted(start), 1.0)
        reached: dict[str, float] = dict(active)
        for _ in range(self.hops):
            active = self._step(query, active, reached)
            reached |= active
        found = sorted((id_ for id_ in reached if id_ not in start), key=lambda id_: (-reached[id_], id_))
        return [Found(id_, reached[id_], place) for place, id_ in enumerate(found[:depth], 1)]

    def _step(self, query: Query, active: Mapping[str, float], reached: Mapping[str, float]) -> dict[str, float]:
        """The entries one relation further that a stronger path leads to than any before."""
        ways = [way for way in self._ways(active) if way[0] >= self.least]
        inside = self.store.within(sorted({target for _, target in ways}), query.filters)
        better: dict[str, float] = {}
        for activation, target in ways:
            if target in inside and activation > max(reached.get(target, 0.0), better.get(target, 0.0)):
                better[target] = activation
        return better

    def _ways(self, active: Mapping[str, float]) -> list[tuple[float, str]]:
        """(activation, target) of the strongest edges at each active entry."""
        at: dict[str, list[tuple[float, str]]] = {}
        for edge in self.store.edges(list(active)) if active else []:
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                if here in active and here != there:
                    at.setdefault(here, []).append((active[here] * self.decay * strength(edge), there))
        return [way for own in at.values() for way in sorted(own, key=lambda way: (-way[0], way[1]))[: self.fan]]


def strength(edge: Edge) -> float:
    """What an edge passes on, in 0..1: the weight of its type times its own strength, which is 1 where none is
    given.
    """
    own = 1.0 if edge.strength is None else min(max(edge.strength, 0.0), 1.0)
    return STRENGTHS.get(edge.type, OTHER) * own


def _graph(parts: Parts, settings: RetrieverConfig) -> GraphRetriever:
    values = GRAPH.values(settings)
    whole = {name: int(values[name]) for name in ("seeds", "hops", "fan")}
    return GraphRetriever(parts.store, **whole, decay=values["decay"], least=values["least"])


GRAPH = RetrieverKind(
    name="graph",
    build=_graph,
    after=("vector", "bm25", "fts"),
    starts="seeds",
    parameters=(SEEDS, HOPS, DECAY, LEAST, FAN),
)
