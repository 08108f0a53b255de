"""Runs a cheap search first and an expensive one only where the first found too little (EchoVault)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from steelyard.base.arrays import Bools
from steelyard.fusion.available import Available
from steelyard.fusion.base import Expr, Fallback, Needs, join_needs
from steelyard.fusion.call import FAULTY, CallReader, Family
from steelyard.fusion.plan import Branch, Plan
from steelyard.table.signal_table import SignalTable, count_rows


@dataclass(frozen=True)
class Tiered(Family):
    """Ranks by ``first`` where it ranks at least `min_results` entries, and by ``then`` for the other queries."""

    keyword: ClassVar[str] = "tiered"
    shown_as: ClassVar[str] = "tiered"
    routes: ClassVar[bool] = True
    MIN_RESULTS: ClassVar = (1, 3, 5, 10, 20, 50)

    first: Expr
    then: Expr
    min_results: int = 3

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """Each list that may answer alone, before the RRF of those behind it and of each further one."""
        return {
            f"{first} first" if len(there.tiers) > 1 else cls.shown_as: [
                f"tiered({first}, min_results=10, then=rrf({', '.join((*behind, *more))}))"
                for more in there.additions
            ]
            for first, behind in there.tiers.items()
        }

    @classmethod
    def read(cls, call: CallReader) -> Self:
        """Read the first tier in brackets and the second from the option `then`."""
        count = int(call.number("min_results", 3.0, 0.0, whole=True))
        then = call.take("then")
        call.finish("min_results", "then")
        items = call.call.items
        if len(items) != 1 or items[0].weight is not None:
            call.fault("tiered takes one unweighted first tier, as in tiered(fts, then=vector)")
        first = call.build(items[0].call if items else FAULTY)
        return cls(first, call.branch("then", then), count)

    def children(self) -> tuple[Expr, ...]:
        """Return both tiers."""
        return (self.first, self.then)

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return the same rule for other tiers."""
        first, then = children
        return replace(self, first=first, then=then)

    def variants(self) -> Iterator[Expr]:
        """Iterate over the values of `min_results` that tuning tries."""
        yield from (replace(self, min_results=count) for count in sorted({*self.MIN_RESULTS, self.min_results}))

    def describe(self) -> Fallback:
        """Describe it as a search with a fallback."""
        why = (
            f"tiered(...) runs its second tier only where the first finds fewer than {self.min_results}; "
            "a hybrid query always fuses all lists"
        )
        return Fallback(why, first=self.first, then=self.then, min_results=self.min_results)

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the second tier when it loses a signal; the first then answers alone."""
        first, then = self.first.without(missing), self.then.without(missing)
        if first is None or then is None:
            return first or then
        return Tiered(first, then, self.min_results) if then == self.then else first

    def needs(self, table: SignalTable, retrievers: Collection[str]) -> Needs:
        """List the second tier's signals only for the queries where the first found too little."""
        needed = self.first.needs(table, retrievers)
        if any(queries.any() for name, queries in needed.items() if name not in table.columns):
            return needed
        short = ~self._enough(table, self.first.members(table, self.first.everywhere(table)))
        later = self.then.needs(table, retrievers)
        return join_needs(needed, {name: queries & short for name, queries in later.items()})

    def members(self, table: SignalTable, within: Bools) -> Bools:
        """Return the rows of the tier that answers each query."""
        first, rest = self._tiers(table, within)
        return first | self.then.members(table, rest) if rest.any() else first

    def compile(self, table: SignalTable, within: Bools) -> Plan:
        """Compile both tiers, each restricted to its own queries.

        A tier without rows is left out, because live search did not fetch its signals.
        """
        branches: tuple[Branch, ...] = ()
        for expr, rows in zip((self.first, self.then), self._tiers(table, within), strict=True):
            if rows.any():
                branches += expr.compile(table, rows).branches
        return Plan(len(table), branches)

    def _tiers(self, table: SignalTable, within: Bools) -> tuple[Bools, Bools]:
        """The rows that the first tier ranks in the queries it answers, and those that the second may rank."""
        ranked = self.first.members(table, within & self.first.everywhere(table))
        enough = self._enough(table, ranked)[table.query]
        return ranked & enough, within & self.then.everywhere(table) & ~enough

    def _enough(self, table: SignalTable, ranked: Bools) -> Bools:
        enough: Bools = count_rows(table, ranked) >= self.min_results
        return enough

    def __str__(self) -> str:
        return f"tiered({self.first}, min_results={self.min_results}, then={self.then})"
