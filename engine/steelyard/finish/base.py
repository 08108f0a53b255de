"""What a finish stage is: a step between the ranked rows and the list that is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import ClassVar, Self

from steelyard.finish.ranking import Ranking
from steelyard.fusion.explain import Explanation
from steelyard.table.signal_table import SignalTable


class Stage(ABC):
    """A step that maps a ranking to a ranking, and prints as it is written in a weights file: ``cut(10)``."""

    __slots__ = ()

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
    def needs(self) -> frozenset[str]:
        """The signals that have to be fetched for every query."""
        return frozenset()

    @property
    def facts(self) -> frozenset[str]:
        """The signals that it computes from what is known of entries and queries."""
        return frozenset()

    def without(self, missing: AbstractSet[str]) -> Self | None:
        """What is left of it when these signals cannot be had."""
        return None if self.needs & missing else self

    def explain(self, table: SignalTable, ranking: Ranking, row: int) -> Explanation | None:
        """How it came to its score of a row of the ranking before; None where the row keeps the score it had."""
        return None
