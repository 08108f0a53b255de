"""The code that families of weighted sums share.

`Sum` has the terms and their weights. `NormalizedSum` brings each term onto one scale by its values,
`ranked_column` by its ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from steelyard.base.arrays import Bools, Floats
from steelyard.fusion.base import Expr, Term, nested
from steelyard.fusion.call import CallReader
from steelyard.fusion.normalize import ABSOLUTE, NORMALIZERS, TRIED, has_ends
from steelyard.fusion.plan import Column
from steelyard.fusion.walk import leaves
from steelyard.signals import PRIORS
from steelyard.table.signal_table import FETCHED, SignalTable, ranks

BOUNDED = (FETCHED | PRIORS.keys()) - {"fts", "bm25"}
"""Signals in 0..1. Tuning tries other normalisations only for sums with a signal that may be larger."""


@dataclass(frozen=True)
class Sum(Expr):
    """Weighted terms that are added up; subclasses choose the scale of each."""

    terms: tuple[Term, ...]

    def children(self) -> tuple[Expr, ...]:
        """Return the expressions that are added up, in the order written."""
        return tuple(term.expr for term in self.terms)

    def with_children(self, children: Sequence[Expr]) -> Self:
        """Return the same weights over other expressions."""
        return replace(self, terms=tuple(map(Term, self._own_weights, children)))

    @property
    def own_terms(self) -> tuple[Term, ...]:
        """The terms, where they have weights."""
        return self.terms if self.weights else ()

    def with_terms(self, terms: Sequence[Term]) -> Self:
        """Return the same sum of other terms."""
        return replace(self, terms=tuple(terms))

    def without(self, missing: Collection[str]) -> Expr | None:
        """Drop the terms that cannot be computed; the others keep their weights."""
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
        """Each term as a raw column, with the rows where it has a value (bool[N])."""
        return [nested(term.expr, table, rows) for term in self.terms]

    def _bare_terms(self) -> list[str]:
        """The terms as text; a weight of 1 is left out."""
        return [str(term.expr) if term.weight == 1 else str(term) for term in self.terms]


@dataclass(frozen=True)
class NormalizedSum(Sum):
    """A sum whose terms are normalised within each query; see `steelyard.fusion.normalize`."""

    normalize: str = "none"

    @classmethod
    def _read(cls, call: CallReader, weight: float | None, usual: str) -> Self:
        """Read the terms, with a `weight` where none is written, and the normalisation, `usual` by default."""
        normalize = call.word("normalize", usual, tuple(NORMALIZERS))
        call.finish("normalize")
        made = cls(call.terms(weight), normalize)
        for term in made.terms if normalize == "theoretical" else ():
            if not has_ends(term.expr):
                call.fault(f"{call.call.name}: normalize=theoretical has no scale for {term.expr}; {_WITH_ENDS}")
        return made

    def variants(self) -> Iterator[Expr]:
        """Iterate over all normalisations when terms are on different scales, else its own alone."""
        tried = TRIED if self.normalize in TRIED else (self.normalize,)
        raw = len(self.terms) > 1 and any(leaf.name not in BOUNDED for leaf in leaves(self))
        yield from (replace(self, normalize=name) for name in (tried if raw else (self.normalize,)))

    @property
    def absolute(self) -> bool:
        """Whether neither its normalisation nor a part of it follows what else was found."""
        return self.normalize in ABSOLUTE and all(child.absolute for child in self.children())

    def coordinates(self) -> tuple[float, ...]:
        """Return 1 for its normalisation and 0 for each other, so that all are equally far apart."""
        return tuple(float(self.normalize == name) for name in NORMALIZERS)

    def _normalized(self, table: SignalTable, rows: Bools) -> list[tuple[Column, Bools]]:
        normalized = NORMALIZERS[self.normalize]
        return [(normalized(table, column, present), present) for column, present in self._columns(table, rows)]


_WITH_ENDS = "its formula gives no ends, as those of bm25, vector, cosine, tfidf, the layers and priors of 0..1 do"


def ranked_column(
    table: SignalTable, column: Column, present: Bools, points: Callable[[Floats], Floats], formula: str
) -> Column:
    """Replace the values of a list by points for its ranks.

    Parameters
    ----------
    column, present : Column, bool[N]
        The list: its values, and the rows that it contains.
    points : callable
        From ranks (float64, from 1) to points.
    formula : str
        The same in words, for `explain`.

    Returns
    -------
    Column
        ``points(rank)`` of each row in the list, 0 for the others.
    """
    place = ranks(table, column.values, present)
    values = np.where(present, points(place), 0.0)
    return Column(column.label, values, formula, {"rank": place, column.label: column.values}, column.inner)


def count_lists(pairs: Sequence[tuple[Column, Bools]]) -> Floats:
    """Count the lists that contain each row; float64[N]."""
    lists: Floats = np.sum([present for _, present in pairs], axis=0, dtype=np.float64)
    return lists


def terms_without(terms: tuple[Term, ...], missing: Collection[str]) -> tuple[Term, ...]:
    """Keep the terms that can be computed without these signals; none when no term is left that finds entries."""
    pairs = ((term.weight, term.expr.without(missing)) for term in terms)
    left = tuple(Term(weight, expr) for weight, expr in pairs if expr is not None)
    return left if _find(left) or not _find(terms) else ()


def _find(terms: tuple[Term, ...]) -> bool:
    return any(term.expr.retrievers() for term in terms)
