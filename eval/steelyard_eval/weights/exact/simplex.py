"""Branch and bound over three weights: finds the best value on the whole triangle, with a proof.

The triangle of weights is cut into convex polygons, the most promising first. A polygon is dropped when no point
inside can beat the best value found (`polygons`); every value found is a direct evaluation. Cuts follow
crossings, so that all pairs that swap on the same line, as reciprocal ranks often do, are settled at once.
Cells of weights thinner than rounding (1e-13 of the scores) count as part of the crossing that they are at; the
triangle's sides are swept, including their ends.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.weights.exact.curve import SAME
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.polygons import contested_pairs, cut, reach, sides, tally
from steelyard_eval.weights.exact.sweep import segment

NODES = 50_000
"""The number of polygons that are evaluated before giving up on a proof."""


@dataclass(frozen=True)
class Proof:
    """The best weights found (float64[S]), their mean, its upper bound, and the number of polygons evaluated."""

    weights: Floats
    value: float
    bound: float
    nodes: int


@dataclass(frozen=True)
class _Node:
    """The queries that are still open on a polygon.

    The open queries have relevant rows `rows` (int64[A]), those of the g-th ``offsets[g]:offsets[g+1]``. Each has
    `counts` (int64[A]) contested `pairs`, stored row after row, and `ahead` (int64[2, A]) rows ahead of it
    everywhere, all and the irrelevant ones. `settled` is the sum of the values of the other queries.
    """

    rows: Indices
    offsets: Indices
    counts: Indices
    pairs: Indices
    ahead: Indices
    settled: float


@dataclass(frozen=True)
class _Look:
    """The evaluation of a polygon: its node, an upper bound, the value at its centre, a crossing to cut along."""

    node: _Node
    bound: float
    central: float
    crossing: Floats | None


def ceiling(objective: Objective, corners: Floats) -> float:
    """Return an upper bound of the mean over all mixtures of the corners (float64[V, S]), boundary included."""
    triangle, node = _Mixtures.of(objective, corners, closed=True)
    return float(triangle.reach(node, node.ahead).sum() / objective.queries)


def prove(objective: Objective, corners: Floats, weights: Floats, nodes: int = NODES) -> Proof:
    """Find the best mixture of three corners (float64[3, S]), starting from good weights (float64[S]).

    The bound equals the value when that is proven; else it is what unexplored polygons might reach.
    """
    mixtures, node = _Mixtures.of(objective, corners, closed=False)
    weights, value = _best_of_sides(objective, corners, weights)
    heap, order, looked, lost = [(-np.inf, 0, np.eye(3), node)], itertools.count(1), 0, -np.inf
    while heap and -heap[0][0] > value + SAME and looked < nodes:
        _, _, polygon, parent = heapq.heappop(heap)
        look = mixtures.look(polygon, parent)
        looked += 1
        if look.central > value + SAME:
            weights, value = _better(objective, polygon.mean(axis=0) @ corners, weights, value)
        if look.bound <= value + SAME:
            continue
        if look.crossing is None:
            lost = max(lost, look.bound)  # within rounding of the crossings the bound cannot be reached
        else:
            for part in _halves(polygon, look.crossing):
                heapq.heappush(heap, (-look.bound, next(order), part, look.node))
    unseen = -heap[0][0] if heap else -np.inf
    return Proof(weights, value, float(max(value, lost, unseen if unseen > value + SAME else -np.inf)), looked)


def _best_of_sides(objective: Objective, corners: Floats, weights: Floats) -> tuple[Floats, float]:
    value = objective.mean(weights)
    for a, b in itertools.combinations(corners, 2):
        found = a + segment(objective, a, b).curve().choose().t * (b - a)
        weights, value = _better(objective, found, weights, value)
    return weights, value


def _better(objective: Objective, found: Floats, weights: Floats, value: float) -> tuple[Floats, float]:
    new = objective.mean(found)
    return (found, new) if new > value + SAME else (weights, value)


def _halves(polygon: Floats, crossing: Floats) -> list[Floats]:
    """The two parts of a polygon beside a crossing; slivers are left out."""
    parts = (cut(polygon, form) for form in (crossing, -crossing))
    return [vertices[:count] for vertices, count in parts if count >= 3]


@dataclass(frozen=True)
class _Mixtures:
    """An objective over the mixtures of some corners, with its contested pairs (see `contested_pairs`)."""

    objective: Objective
    best_first: Floats
    difference: Floats
    rival: Bools

    @classmethod
    def of(cls, objective: Objective, corners: Floats, *, closed: bool) -> tuple[_Mixtures, _Node]:
        """The mixtures and the node of them all."""
        o = objective
        scores = np.stack([o.scores(corner) for corner in corners])
        difference, rival, count, counts, ahead = contested_pairs(
            scores, o.offsets, o.relevant, o.relevant_offsets, o.graded, o.deepest, closed
        )
        best_first = o.gain[np.lexsort((-o.gain, o.query))]
        offsets = np.unique(o.relevant_offsets)  # of the queries that have relevant rows
        node = _Node(np.arange(len(o.relevant)), offsets, counts, np.arange(count), ahead, 0.0)
        return cls(o, best_first, difference[:count], rival[:count]), node

    def reach(self, node: _Node, ahead: Indices) -> Floats:
        """Bound each open query, float64[G], by the number of rows ahead of its relevant ones."""
        o = self.objective
        graded = o.graded[o.query[node.rows[node.offsets[:-1]]]]
        gains = (o.gain[node.rows], self.best_first[node.rows])
        return reach(ahead, node.offsets, o.kind, *gains, o.by_rank, graded)

    def look(self, polygon: Floats, parent: _Node) -> _Look:
        """Settle the pairs and queries of its parent that the polygon settles, and bound the others."""
        centre = polygon.mean(axis=0)
        orders, middle, even = sides(polygon, centre, self.difference, parent.pairs)
        pairs = (parent.counts, parent.pairs, self.rival)
        ahead = tally(parent.ahead, *pairs, orders, 1)
        most = self.reach(parent, ahead)
        least = self.reach(parent, tally(parent.ahead, *pairs, orders, 0))
        central = self.reach(parent, tally(parent.ahead, *pairs, middle, 1))
        still = most > least
        node, kept = self._keep(parent, ahead, orders == 0, still, float(most[~still].sum()))
        even = even[kept]
        crossing = self.difference[node.pairs[int(np.argmax(even))]] if len(even) else None
        count = self.objective.queries
        bound = (node.settled + most[still].sum()) / count
        return _Look(node, float(bound), float(parent.settled + central.sum()) / count, crossing)

    def _keep(
        self, parent: _Node, ahead: Indices, contested: Bools, still: Bools, settled: float
    ) -> tuple[_Node, Bools]:
        """The node of the queries that are still open, and which of the parent's pairs are in it."""
        sizes = np.diff(parent.offsets)
        rows = np.repeat(still, sizes)
        kept = contested & np.repeat(rows & (ahead[0] < self.objective.deepest), parent.counts)
        owner = np.repeat(np.arange(len(rows)), parent.counts)
        node = _Node(
            parent.rows[rows],
            np.concatenate(([0], np.cumsum(sizes[still]))),
            np.bincount(owner[kept], minlength=len(rows))[rows],
            parent.pairs[kept],
            np.ascontiguousarray(ahead[:, rows]),
            parent.settled + settled,
        )
        return node, kept
