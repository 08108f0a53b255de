"""What a finish stage is, how its parameters are read, and the ranking with its one tie rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Ints
from steelyard.fusion import Expr
from steelyard.fusion.explain import Explanation
from steelyard.grammar import Item, value_text
from steelyard.signals import PRIORS
from steelyard.table.signal_table import FETCHED, SignalTable, best_first

LONGEST = 1_000_000_000
"""The largest length a stage can name; far beyond any list, and small enough for numpy's integers."""


class Stage(ABC):
    """A step that maps a ranking to a ranking; subclasses are frozen dataclasses.

    It prints as it is written in a weights file, ``cut(10, all_below=50)``: its first field, and by their names
    those of the others that differ from their defaults.
    """

    __slots__ = ()

    keyword: ClassVar[str]
    """The name it is written with."""
    FORM: ClassVar[str]
    """How it is written, for whoever wrote it wrongly."""
    read: ClassVar[Callable[..., Stage]]
    """Make it of what is written between the parentheses; ValueError for what it cannot be made of."""
    RESCORES: ClassVar[bool] = False
    """Whether the scores after it are its own, which it explains."""

    @abstractmethod
    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""

    @property
    def scale(self) -> Expr | None:
        """The expression that it scores by, where it has one of its own."""
        return None

    @property
    def needs(self) -> frozenset[str]:
        """The signals that have to be fetched for every query."""
        return self.scale.signals() & FETCHED if self.scale else frozenset()

    @property
    def facts(self) -> frozenset[str]:
        """The signals that it computes from what is known of entries and queries."""
        return self.scale.signals() & PRIORS.keys() if self.scale else frozenset()

    @property
    def reads_ends(self) -> frozenset[str]:
        """The retrievers whose scores it scales by the ends of their formulas."""
        return self.scale.reads_ends if self.scale else frozenset()

    def without(self, missing: AbstractSet[str]) -> Self | None:
        """What is left of it when these signals cannot be had."""
        return None if self.needs & missing else self

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How it came to its score of a row of the ranking before; None where the row keeps the score it had."""
        return None

    def __str__(self) -> str:
        first, *others = fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        given = ((option, getattr(self, option.name)) for option in others)
        options = (f"{option.name}={value_text(value)}" for option, value in given if value != option.default)
        return f"{self.keyword}({', '.join([value_text(getattr(self, first.name)), *options])})"


def whole_number(value: object, low: int = 1, high: int = LONGEST) -> int:
    """A whole number from `low` to `high`; ValueError for what cannot stand there."""
    if not isinstance(value, float) or not low <= value <= high or value != int(value):
        raise ValueError
    return int(value)


def name_of(item: Item, valid: Collection[str]) -> str:
    """One of the valid names, and nothing beside it; ValueError else."""
    if item.weight is not None or item.call.items or item.call.options or item.call.name not in valid:
        raise ValueError
    return item.call.name


@dataclass(frozen=True)
class Ranking:
    """Ranked lists of many queries, best first, as CSR.

    Attributes
    ----------
    offsets : int64[Q+1]
        Query q has the places ``offsets[q]:offsets[q+1]``.
    row : int64[R]
        Indices of table rows.
    score : float64[R]
        Their scores.
    """

    offsets: NDArray[np.int64]
    row: NDArray[np.int64]
    score: Floats

    def keep(self, kept: NDArray[np.bool_]) -> Ranking:
        """Return the same lists with only the given places (bool[R])."""
        before = np.concatenate(([0], np.cumsum(kept)))
        return Ranking(before[self.offsets].astype(np.int64), self.row[kept], self.score[kept])


def order(table: SignalTable, scores: Floats, ties: Ints | None = None) -> Ranking:
    """Sort the scored rows of every query: score descending, then id ascending by bytes.

    `scores` is float64[N], NaN for rows that are not ranked; `ties` int32[N] comes before the id, see `Plan.ties`.
    """
    row = np.flatnonzero(~np.isnan(scores))
    offsets = np.searchsorted(row, table.offsets).astype(np.int64)
    row = row[best_first(offsets, scores[row], None if ties is None else ties[row])]
    return Ranking(offsets, row.astype(np.int64), scores[row])
