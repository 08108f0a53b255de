"""The result of a search: hits with their entries and signals, and the explanation of each score."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, VaultError, quote
from steelyard.config import SearchConfig, policy_of
from steelyard.finish import Ranking, Stage, explain_rescore, floor_that_emptied
from steelyard.fusion import Expr, Progress, compile_plan, leaves, progress
from steelyard.fusion.plan import Explanation
from steelyard.memory.entry import Hit
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS
from steelyard.signals import PRIORS
from steelyard.stores.base import ReadableStore, plain, plain_id
from steelyard.table.signal_table import SignalTable, ranks


@dataclass(frozen=True)
class SearchResult:
    """The result of one search."""

    hits: tuple[Hit, ...]
    """Best first."""
    table: SignalTable
    ranking: Ranking
    strategy: Expr
    """The signals, the final rows of the table and the strategy that was used, from which `explain` works."""
    fused: Floats
    """float64[N]: the strategy's score of every row, before anything is finished; NaN where it ranks none."""
    embedding_calls: int
    """0 or 1, or up to one for each model of a federation."""
    degraded: bool
    """Whether the embedder, a retriever or the re-ranker failed, so that the others answered without it."""
    notes: tuple[str, ...] = ()
    """What else was searched by keywords alone, and why."""
    finish: tuple[Stage, ...] = ()
    """The stages after fusion."""
    query: Query = field(default_factory=lambda: Query(""))
    """What was searched, with its clock, intent and texts."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """The time of each retriever, and of the whole search as ``search``."""
    explored: tuple[SearchConfig, ...] = ()
    placed_by: tuple[str, ...] = ()
    """The other configuration of a list that was interleaved, and for each hit the hash of what placed it."""
    parts: "tuple[SearchResult, ...]" = ()
    """What an interleaved list was drafted from, two; `table`, `ranking` and the like are of the first."""
    moved_by: str = ""
    """What moved the weights of the configuration, in words; empty where nothing did."""

    @property
    def progress(self) -> Progress | None:
        """How far a layered search went; None of any other."""
        return progress(self.strategy, self.table)

    @property
    def emptied(self) -> str:
        """Which floor or step of a layered search left nothing to show, in words; empty where there are hits."""
        if self.hits:
            return ""
        progress, below = self.progress, floor_that_emptied(self.table, self.fused, self.finish)
        if below or progress is None:
            return below
        return progress.emptied() or "only directories were found, and results are files"

    @cached_property
    def fusion(self) -> tuple[Expr, Floats]:
        """The fusion that answered, without the factors around it, and its scores as in `fused`."""
        fusion = self.strategy.active_branch(self.table)
        return fusion, compile_plan(self.table, fusion).scores()

    def behind(self, hit: Hit) -> "tuple[SearchResult, Hit]":
        """The result that ranked a hit, and the hit as it stands there: another one in an interleaved list."""
        if not self.parts:
            return self, hit
        result = self.parts[self.placed_by[hit.rank - 1] == policy_of(self.explored[0])]
        return result, next(other for other in result.hits if other.entry.id == hit.entry.id)

    def place(self, hit: Hit, retriever: str) -> int | None:
        """The rank of a hit among what a retriever found, from 1; None where it did not find it."""
        if retriever not in self.table.columns:
            return None
        values = self.table.columns[retriever]
        place = ranks(self.table, values, ~np.isnan(values))[self.row(hit)]
        return None if np.isnan(place) else int(place)

    def row(self, hit: Hit) -> int:
        """The row of the table that a hit stands for."""
        return int(self.ranking.row[hit.rank - 1])

    def explain(self, hit: Hit | str) -> Explanation:
        """Explain the score of a hit, or of an entry by its id, as a tree; ConfigError when it was not ranked."""
        if self.parts:
            if isinstance(hit, str):
                hit = next((other for other in self.hits if other.entry.id == hit), hit)
            result, hit = self.behind(hit) if isinstance(hit, Hit) else (self.parts[0], hit)
            return result.explain(hit)
        id_ = hit if isinstance(hit, str) else hit.entry.id
        table, names = self.table, self.table.entries
        rows = [row for row, entry in enumerate(table.entry) if plain_id(names[entry]) == id_]
        if rows:
            again = explain_rescore(table, self.fused, self.finish, rows[0])
            if tree := again or compile_plan(table, self.strategy).explain(rows[0]):
                return replace(tree, text=f"{tree.text}; {self.moved_by}") if self.moved_by else tree
        added = np.flatnonzero(np.isin(self.ranking.row, rows))
        if not len(added):
            raise ConfigError(f"entry {quote(id_)} is not ranked for this query; explain one of the hits")
        score = float(self.ranking.score[added[0]])
        return Explanation(score, "added at a fixed score when the list was finished")


def hits_of(
    store: ReadableStore, table: SignalTable, ranking: Ranking, strategy: Expr, scores: Floats
) -> tuple[Hit, ...]:
    """Read the ranked entries and their signals, see `Hit`; VaultError when an entry was deleted meanwhile.

    `scores` are those of the strategy. A row that a finish stage added, and that was not fused, has no signals.
    """
    ids = [table.entries[table.entry[row]] for row in ranking.row]
    entries = {entry.id: entry for entry in store.get(ids)}
    if gone := [id_ for id_ in ids if id_ not in entries]:
        entry, remedy = quote(plain_id(gone[0])), "search again, or run steelyard index VAULT --rebuild"
        raise VaultError(f"entry {entry} was deleted meanwhile; {remedy}")
    read = {}
    for leaf in leaves(strategy):
        if leaf.name in PRIORS or leaf.name in table.columns:
            values = leaf.derived(table).values
            column = values[ranking.row]
            if leaf.name in LAYERS:  # those of the directory, for its files
                home = table.parent[ranking.row]
                column = np.where(np.isnan(column) & (home >= 0), values[home], column)
            read[leaf.name] = np.where(np.isnan(column), 0.0, column).tolist()
    hits = []
    for place, (id_, row, score) in enumerate(zip(ids, ranking.row, ranking.score.tolist(), strict=True)):
        signals = {} if np.isnan(scores[row]) else {name: values[place] for name, values in read.items()}
        hits.append(Hit(place + 1, score, plain(entries[id_]), signals))
    return tuple(hits)
