"""Cheap search first, the expensive one only where it found too little (EchoVault)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from steelyard.fusion.base import Expr, Needs, join_needs
from steelyard.fusion.plan import Branch, Plan
from steelyard.table import Bools, SignalTable, count_rows


@dataclass(frozen=True)
class Tiered(Expr):
    """``first`` for the queries where it ranks at least `min_results` entries, ``then`` for the others."""

    first: Expr
    then: Expr
    min_results: int = 3

    def children(self) -> tuple[Expr, ...]:
        """Both tiers."""
        return (self.first, self.then)

    def without(self, missing: Collection[str]) -> Expr | None:
        """A second tier that lost a signal is dropped: the first one answers alone."""
        first, then = self.first.without(missing), self.then.without(missing)
        if first is None or then is None:
            return first or then
        return Tiered(first, then, self.min_results) if then == self.then else first

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """The second tier's signals, only for the queries that the first left short."""
        needed = self.first.needs(table, retrievers)
        if any(queries.any() for name, queries in needed.items() if name not in table.columns):
            return needed
        short = ~self._enough(table, self.first.members(table, self.first.everywhere(table)))
        later = self.then.needs(table, retrievers)
        return join_needs(needed, {name: queries & short for name, queries in later.items()})

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """The rows of the tier that answers each query."""
        first, rest = self._tiers(table, within)
        return first | self.then.members(table, rest) if rest.any() else first

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """The branches of both tiers, each restricted to its own queries.

        A tier without rows is left out: live search did not fetch its signals.
        """
        branches: tuple[Branch, ...] = ()
        for expr, rows in zip((self.first, self.then), self._tiers(table, within), strict=True):
            if rows.any():
                branches += expr.compile(table, rows).branches
        return Plan(len(table), branches)

    def _tiers(self, table: SignalTable, within: Bools) -> tuple[Bools, Bools]:
        """The rows the first tier ranks for the queries it answers, and those the second may rank."""
        ranked = self.first.members(table, within & self.first.everywhere(table))
        enough = self._enough(table, ranked)[table.query]
        return ranked & enough, within & self.then.everywhere(table) & ~enough

    def _enough(self, table: SignalTable, ranked: Bools) -> Bools:
        found: Bools = count_rows(table, ranked) >= self.min_results
        return found

    def __str__(self) -> str:
        return f"tiered({self.first}, min_results={self.min_results}, then={self.then})"
