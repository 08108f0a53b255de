"""What a search gives back: hits with their entries and signals, and the explanation of each score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from steelyard.entry import Hit
from steelyard.errors import ConfigError, VaultError, shown
from steelyard.explain import Explanation
from steelyard.finish import Ranking
from steelyard.fusion import Expr, Progress, compile_plan, leaves
from steelyard.query import Query
from steelyard.signals import PRIORS
from steelyard.stores.base import Readable
from steelyard.stores.federation import plain, plain_id
from steelyard.table import LAYERS, SignalTable


@dataclass(frozen=True)
class SearchResult:
    """What one search gave.

    `table` holds the signals and `ranking` the final rows of it, for explanation. `embedding_calls`
    is 0 or 1, or one for each model that tiers have; `degraded` says that the embedder failed and keywords
    answered alone. `notes` says what else was searched by keywords alone, and why. `query` is what was searched,
    with its clock, intent and texts; `seconds` the time of each retriever, and of the whole as ``search``.
    """

    hits: tuple[Hit, ...]
    table: SignalTable
    ranking: Ranking
    strategy: Expr
    embedding_calls: int
    degraded: bool
    notes: tuple[str, ...] = ()
    query: Query | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def progress(self) -> Progress | None:
        """How far a layered search went; None of any other."""
        return self.strategy.progress(self.table)

    def explain(self, hit: Hit | str) -> Explanation:
        """How the score of a hit, or of an entry by its id, came about.

        Raises ConfigError when the strategy did not rank the entry. A hit that a finish stage added has the
        score of that stage.
        """
        id_ = hit if isinstance(hit, str) else hit.entry.id
        names = self.table.entries
        rows = [row for row, entry in enumerate(self.table.entry) if plain_id(names[entry]) == id_]
        tree = compile_plan(self.table, self.strategy).explain(rows[0]) if rows else None
        if tree is not None:
            return tree
        added = np.flatnonzero(np.isin(self.ranking.row, rows))
        if not len(added):
            raise ConfigError(f"entry {shown(id_)} is not ranked for this query; explain one of the hits")
        return Explanation(
            float(self.ranking.score[added[0]]), "added at a fixed score when the list was finished"
        )


def hits_of(store: Readable, table: SignalTable, ranking: Ranking, strategy: Expr) -> tuple[Hit, ...]:
    """The ranked entries with what the strategy read of them; VaultError when one is gone meanwhile."""
    ids = [table.entries[table.entry[row]] for row in ranking.row]
    found = {entry.id: entry for entry in store.get(ids)}
    if gone := [id_ for id_ in ids if id_ not in found]:
        raise VaultError(
            f"entry {shown(plain_id(gone[0]))} was found and is gone; search again, or run steelyard reindex"
        )
    signals = _signals(table, strategy, ranking)
    scored = enumerate(zip(ids, ranking.score, signals, strict=True), 1)
    return tuple(Hit(rank, float(score), plain(found[id_]), own) for rank, (id_, score, own) in scored)


def _signals(table: SignalTable, strategy: Expr, ranking: Ranking) -> list[dict[str, float]]:
    """What the strategy read of each ranked row, by the name of the signal; 0 where it was not returned.

    Nothing of a row that it does not rank, which a finish stage added.
    """
    everywhere = np.ones(len(table), dtype=bool)
    ranked = strategy.members(table, strategy.everywhere(table))[ranking.row]
    home = np.where(table.home < 0, np.arange(len(table)), table.home)
    read = {}
    for leaf in leaves(strategy):
        if leaf.name in PRIORS or leaf.name in table.columns:
            values = leaf.compile(table, everywhere).branches[0].columns[0].values
            above = values[home] if leaf.name in LAYERS else values  # those of the directory, for its files
            found = np.where(np.isnan(values), above, values)[ranking.row]
            read[leaf.name] = np.nan_to_num(found)
    return [{n: float(values[at]) for n, values in read.items()} if own else {} for at, own in enumerate(ranked)]
