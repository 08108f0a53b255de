"""What the families that add up weighted terms have in common.

`Sum` holds the terms and their weights; `NormalizedSum` brings each term onto one scale by its values,
`ranked_column` by its ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from steelyard.fusion.base import Expr, Term, nested
from steelyard.fusion.normalize import NORMALIZERS
from steelyard.fusion.plan import Column
from steelyard.fusion.walk import leaves
from steelyard.signals import PRIORS
from steelyard.table import FETCHED, Bools, Floats, SignalTable, ranks

BOUNDED = (FETCHED | PRIORS.keys()) - {"fts", "bm25"}
"""Signals in 0..1, whose sums keep their normalisation; keyword scores and recorded lists may be larger."""


@dataclass(frozen=True)
class Sum(Expr):
    """Weighted terms that are added up, however each is brought onto a scale."""

    terms: tuple[Term, ...]

    def children(self) -> tuple[Expr, ...]:
        """The expressions that are added up, in the order written."""
        return tuple(term.expr for term in self.terms)

    def with_children(self, children: Sequence[Expr]) -> Self:
        """The same weights over other expressions."""
        return replace(self, terms=tuple(map(Term, self._own_weights, children)))

    def without(self, missing: Collection[str]) -> Expr | None:
        """The sum of the terms that are left, under their own weights."""
        terms = terms_without(self.terms, missing)
        return replace(self, terms=terms) if terms else None

    @property
    def _own_weights(self) -> tuple[float, ...]:
        return tuple(term.weight for term in self.terms)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each term."""
        return self._own_weights

    def _weighed(self, weights: list[float]) -> Self:
        return replace(self, terms=tuple(map(Term, weights, self.children())))

    def _columns(self, table: SignalTable, rows: Bools) -> list[tuple[Column, Bools]]:
        """Each term as a raw column, and the rows where it has a value."""
        return [nested(term.expr, table, rows) for term in self.terms]

    def _bare_terms(self) -> list[str]:
        """The terms as text; a weight of 1 is left out."""
        return [str(term.expr) if term.weight == 1 else str(term) for term in self.terms]


@dataclass(frozen=True)
class NormalizedSum(Sum):
    """A sum whose terms are normalised by their values within each query; see `steelyard.fusion.normalize`."""

    normalize: str = "none"

    def variants(self) -> Iterator[Expr]:
        """Every normalisation, where terms lie on different scales."""
        raw = len(self.terms) > 1 and any(leaf.name not in BOUNDED for leaf in leaves(self))
        yield from (replace(self, normalize=name) for name in (NORMALIZERS if raw else (self.normalize,)))

    def coordinates(self) -> tuple[float, ...]:
        """1 for its normalisation and 0 for each other: all are equally far from each other."""
        return tuple(float(self.normalize == name) for name in NORMALIZERS)

    def _normalized(self, table: SignalTable, rows: Bools) -> list[tuple[Column, Bools]]:
        normalized = NORMALIZERS[self.normalize]
        return [(normalized(table, column, present), present) for column, present in self._columns(table, rows)]


def ranked_column(
    table: SignalTable, column: Column, present: Bools, points: Callable[[Floats], Floats], formula: str
) -> Column:
    """``points(rank)`` of each row that a list holds, 0 for the others; `formula` says so in words."""
    place = ranks(table, column.values, present)
    values = np.where(present, points(place), 0.0)
    return Column(column.label, values, formula, {"rank": place, column.label: column.values}, column.inner)


def count_lists(pairs: Sequence[tuple[Column, Bools]]) -> Floats:
    """float64[N]: how many of the lists hold each row."""
    lists: Floats = np.sum([present for _, present in pairs], axis=0, dtype=np.float64)
    return lists


def terms_without(terms: tuple[Term, ...], missing: Collection[str]) -> tuple[Term, ...]:
    """The parts that can still be computed; none when no part is left that finds entries."""
    pairs = ((term.weight, term.expr.without(missing)) for term in terms)
    left = tuple(Term(weight, expr) for weight, expr in pairs if expr is not None)
    return left if _find(left) or not _find(terms) else ()


def _find(terms: tuple[Term, ...]) -> bool:
    return any(term.expr.retrievers() for term in terms)
