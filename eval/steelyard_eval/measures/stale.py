"""Stale above current: what a list shows that was replaced or has expired, with no successor above it.

An agent that reads the list from the top acts on the old entry first. The measure needs no judgments, only facts:
`superseded_by` or a relation `supersedes` (a proposed one does not count), `valid_until`, and the query's clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.memory.entry import Entry


@dataclass(frozen=True)
class Succession:
    """Which entries took the place of which, and from when on."""

    later: Mapping[str, frozenset[str]]  # replaced entry -> all that took its place, one after the other
    born: Mapping[str, float]  # entry -> when it was created, where that is known; seconds UTC, as `ends`
    ends: Mapping[str, float]  # entry -> when it ceases to be valid, where it does

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Succession:
        """Read the facts of a corpus."""
        known = {entry.id: entry for entry in entries}
        direct: dict[str, set[str]] = {}
        for entry in known.values():
            if entry.superseded_by in known:
                direct.setdefault(entry.id, set()).add(entry.superseded_by)
            for of in entry.relations:
                if of.type == "supersedes" and of.status in ("", "accepted") and of.target in known:
                    direct.setdefault(of.target, set()).add(entry.id)
        born = {id_: entry.created_at for id_, entry in known.items() if entry.created_at is not None}
        ends = {id_: entry.valid_until for id_, entry in known.items() if entry.valid_until is not None}
        return cls({id_: _all_later(id_, direct) for id_ in direct}, born, ends)

    def __bool__(self) -> bool:
        return bool(self.later or self.ends)

    def stale(self, ids: Sequence[str], clock: float) -> list[str]:
        """The stale entries of a list, best first: gone by the clock, and no successor stands above them.

        >>> facts = Succession({"old": frozenset({"new"})}, {"new": 5.0}, {"rule": 7.0})
        >>> facts.stale(["old", "new", "rule"], 9.0), facts.stale(["new", "old"], 9.0), facts.stale(["old"], 4.0)
        (['old', 'rule'], [], [])
        """
        above: set[str] = set()
        gone = []
        for id_ in ids:
            current = {new for new in self.later.get(id_, ()) if self.born.get(new, clock) <= clock}
            if (current or self.ends.get(id_, math.inf) <= clock) and above.isdisjoint(current):
                gone.append(id_)
            above.add(id_)
        return gone


def _all_later(id_: str, direct: Mapping[str, set[str]]) -> frozenset[str]:
    later: set[str] = set()
    waiting = [id_]
    while waiting:
        new = direct.get(waiting.pop(), set()) - later
        later |= new
        waiting += new
    return frozenset(later - {id_})
