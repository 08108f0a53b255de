"""Drops rows by a signal or by their score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.finish.base import Stage, name_of
from steelyard.finish.ranking import Ranking
from steelyard.grammar import Item
from steelyard.table.signal_table import SCORERS, SignalTable


@dataclass(frozen=True, slots=True)
class Drop(Stage):
    """Drop the rows for which a signal is 0, without filling the list up (MoltNet's negation)."""

    keyword: ClassVar = "drop"
    FORM: ClassVar = f"one of {', '.join(sorted(SCORERS))}, as in drop(lexical)"

    signal: str

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(table.column(self.signal)[ranking.row] != 0)

    @property
    def needs(self) -> frozenset[str]:
        """The signal that decides."""
        return frozenset({self.signal})

    @classmethod
    def read(cls, signal: Item) -> Drop:
        """See Stage."""
        return cls(name_of(signal, SCORERS))


@dataclass(frozen=True, slots=True)
class AtLeast(Stage):
    """Drop what scores below `score`."""

    keyword: ClassVar = "at_least"
    FORM: ClassVar = "one number, as in at_least(0.5)"

    score: float

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        """The list after this step."""
        return ranking.keep(ranking.score >= self.score)

    @classmethod
    def read(cls, score: Item) -> AtLeast:
        """See Stage."""
        if score.weight is None or score.call.name:
            raise ValueError
        return cls(score.weight)
