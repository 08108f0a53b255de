"""Descriptions of expressions for exporters, which do not know the families.

Most families are described as one of two things that other search engines also have: a weighted sum of lists
on one scale, or a second search where the first found too little. `beyond` names what this leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.fusion.base import Expr, Term

RECIPROCAL = "reciprocal"
"""The scale of RRF: an entry scores ``1 / (k + rank)``, and 0 when it is not in the list."""


@dataclass(frozen=True)
class Description:
    """An expression with no counterpart elsewhere; `beyond` is the reason, empty when nothing is left out."""

    beyond: str = ""


@dataclass(frozen=True)
class Linear(Description):
    """``sum of weight * scale(term)``, where `scale` names a normalisation, or is `RECIPROCAL` with its `k`."""

    terms: tuple[Term, ...] = ()
    scale: str = "none"
    k: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fallback(Description):
    """`first` answers the queries for which it finds at least `min_results` entries, `then` the others."""

    first: Expr
    then: Expr
    min_results: int
