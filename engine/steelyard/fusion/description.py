"""What an exporter may know of an expression, without knowing its family.

Most families are described as one of two things that other search engines have too: a weighted sum of lists
brought onto one scale, or a second search where the first found too little. `beyond` names what is left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.fusion.base import Expr, Term

RECIPROCAL = "reciprocal"
"""The scale on which the entry at a rank counts ``1 / (k + rank)``, and 0 when it is not in the list."""


@dataclass(frozen=True)
class Description:
    """`beyond` is what a weighted sum of lists cannot express, in words; empty when there is nothing."""

    beyond: str = ""


@dataclass(frozen=True)
class Linear(Description):
    """``sum of weight * scale(term)``; `scale` is the name of a normalisation, or `RECIPROCAL` with its `k`."""

    terms: tuple[Term, ...] = ()
    scale: str = "none"
    k: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fallback(Description):
    """`first` answers where it finds at least `min_results` entries, `then` answers the other queries."""

    first: Expr
    then: Expr
    min_results: int
