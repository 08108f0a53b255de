"""The ranking with its one tie rule, what a finish stage is, and the stages that cut, drop, append and merge."""

from abc import abstractmethod
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.fusion import Expr
from steelyard.fusion.plan import Explanation
from steelyard.node import MAX_COUNT, Node, opt
from steelyard.retrievers import RETRIEVERS, SCORERS
from steelyard.table.signal_table import SignalTable, best_first, count_rows, ranks


class Stage(Node):
    """A step that maps a ranking to a ranking; subclasses are frozen dataclasses of options.

    It is written in a weights file as ``cut(10, all_below=50)``.
    """

    RESCORES: ClassVar[bool] = False
    """Whether the scores after it are its own, which it explains."""
    READS: ClassVar[frozenset[str]] = frozenset()
    """The signals that it reads, whatever its options are."""

    @abstractmethod
    def __call__(self, table: SignalTable, ranking: "Ranking") -> "Ranking":
        """The list after this step."""

    @property
    def signals(self) -> frozenset[str]:
        """The signals that it reads."""
        words = {getattr(self, name) for name, option in self.options().items() if option.kind == "word"}
        return self.READS.union(words - {""}, *(strategy.signals for strategy in self._strategies()))

    @property
    def reads_ends(self) -> frozenset[str]:
        """The retrievers whose scores it scales by the ends of their formulas."""
        return frozenset().union(*(strategy.reads_ends for strategy in self._strategies()))

    def _strategies(self) -> Iterator[Expr]:
        values = (getattr(self, name) for name in self.options())
        return (value for value in values if isinstance(value, Expr))

    def without(self, missing: AbstractSet[str]) -> "Stage | None":
        """What is left of it when these signals cannot be had: nothing where it reads one of them."""
        return None if self.signals & missing else self

    def explain(self, table: SignalTable, ranking: "Ranking", row: int) -> Explanation | None:
        """How it came to its score of a row of the ranking before; None where the row keeps the score it had."""
        return None


@dataclass(frozen=True)
class Ranking:
    """Ranked lists of many queries, best first, as CSR."""

    offsets: NDArray[np.int64]
    """int64[Q+1]: query q has the places ``offsets[q]:offsets[q+1]``."""
    row: NDArray[np.int64]
    """int64[R]: indices of table rows."""
    score: Floats
    """float64[R]: their scores."""

    @property
    def place(self) -> NDArray[np.int64]:
        """int64[R]: the place of each row in its list, from 0."""
        return np.arange(len(self.row)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def keep(self, kept: NDArray[np.bool_]) -> "Ranking":
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


@dataclass(frozen=True)
class Cut(Stage):
    """Keep the first `limit` places of every list.

    A list of fewer than `all_below` candidates is not cut if the cut would drop more than half of it (Soleri's
    small-corpus guard). Candidates are those that the retriever `counting` found, or all that are ranked.
    """

    limit: int = opt(low=1, high=MAX_COUNT, integer=True, bare=True)
    all_below: int = opt(0, low=0, high=MAX_COUNT, integer=True, quiet=True)
    counting: str = opt("", kind="word", words=RETRIEVERS, quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        size = np.diff(ranking.offsets)
        count = count_rows(table, ~np.isnan(table.column(self.counting))) if self.counting else size
        whole = (count < self.all_below) & (size > 2 * self.limit)
        return ranking.keep(ranking.place < np.repeat(np.where(whole, size, self.limit), size))


@dataclass(frozen=True)
class Drop(Stage):
    """Drop the rows for which a signal is 0, without filling the list up (MoltNet's negation)."""

    signal: str = opt(kind="word", words=SCORERS, bare=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        return ranking.keep(table.column(self.signal)[ranking.row] != 0)


@dataclass(frozen=True)
class AtLeast(Stage):
    """Drop what scores below `score`."""

    score: float = opt(bare=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        return ranking.keep(ranking.score >= self.score)


@dataclass(frozen=True)
class Files(Stage):
    """What becomes of a directory in the list, an entry that others lie in and that has no text of its own.

    It is dropped, or with ``entries`` stands for the entries in it: those that are not ranked take its place and
    its score, as Cortex-Mem's full search returns directories too.
    """

    READS: ClassVar[frozenset[str]] = frozenset({"l2"})  # the layer that a directory lacks

    instead: str = opt(kind="word", words=("none", "entries"), bare=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        folder, home = self.folders(table), table.parent
        if self.instead == "none":
            return ranking.keep(~folder[ranking.row])
        score = np.full(len(table), np.nan)
        score[ranking.row] = ranking.score
        lent = np.where((home >= 0) & folder[home] & ~folder, score[home], np.nan)
        score[folder] = np.nan
        return order(table, np.where(np.isnan(score), lent, score))

    @staticmethod
    def folders(table: SignalTable) -> Bools:
        """bool[N]: the rows of directories."""
        home, rows = table.parent, np.arange(len(table))
        folder = np.zeros(len(table), dtype=bool)
        folder[home[(home >= 0) & (home != rows)]] = True
        return folder & np.isnan(table.columns["l2"]) if "l2" in table.columns else folder


@dataclass(frozen=True)
class Merge(Stage):
    """Add what a separate retriever found, all at one score (Soleri's memories at 0.5).

    Rows that are already ranked keep their score, and come before added rows of the same score. With `if_none`
    at most so many are added, and only to lists that have none of them (system-spec-kit's constitutional entries).
    """

    retriever: str = opt(kind="word", words=RETRIEVERS, bare=True)
    score: float = opt(late=True)
    if_none: int = opt(0, low=0, high=MAX_COUNT, integer=True, quiet=True)

    def __call__(self, table: SignalTable, ranking: Ranking) -> Ranking:
        found = table.column(self.retriever)
        added = ~np.isnan(found)
        if self.if_none:  # the first rows of its list, in the queries whose ranking has none of them
            listed = np.zeros(len(table), dtype=bool)
            listed[ranking.row] = added[ranking.row]
            none = (count_rows(table, listed) == 0)[table.query]
            added = added & none & (ranks(table, found, added) <= self.if_none)
        added[ranking.row] = False
        extra = np.flatnonzero(added)
        extra = extra[np.lexsort((-found[extra], table.query[extra]))]
        row = np.concatenate((ranking.row, extra))
        score = np.concatenate((ranking.score, np.full(len(extra), self.score)))
        best = np.lexsort((-score, table.query[row]))  # stable: ranked rows come first, memories by their own rank
        offsets = np.searchsorted(table.query[row][best], np.arange(len(table.queries) + 1)).astype(np.int64)
        return Ranking(offsets, row[best], score[best])
