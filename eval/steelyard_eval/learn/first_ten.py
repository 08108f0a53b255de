"""The first ten of every query under every candidate's weights: logs are joined to them, gains summed over them.

Rows are (query, entry) pairs in CSR order, as in `Form`. Nothing here reads a log or a label, so the candidates
are the same whatever was logged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import leaves
from steelyard.table.signal_table import SignalTable
from steelyard_eval.decide.grid import Block, shares, totals
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.weights.exact.objective import compiled
from steelyard_eval.weights.exact.optimise import movable
from steelyard_eval.weights.kernel import Form
from steelyard_eval.weights.kernel.form import ungraded

PLACES = 10
"""Places of a list that are learned from, and that gains are summed over."""
DISCOUNT: Floats = 1.0 / np.log2(np.arange(2, PLACES + 2))
COLUMNS = 600
"""Weights that are laid out where more than two move."""


@dataclass(frozen=True)
class CandidateLists:
    """The lists of G candidates over Q queries; candidate 0 has the weights that are used today.

    Attributes
    ----------
    queries, entries : tuple of str
        Ids of the queries, and of the entries by bytes.
    offsets : int64[Q+1]; entry : int32[N]
        The rows of query q are ``offsets[q]:offsets[q+1]``, ascending by entry; E for rows that only cut.
    features : float64[N, F]; names : tuple of F labels
        The signals, each between 0 and 1 over its query's rows, 0 where a retriever did not return the row.
    top : int32[G, Q, PLACES]
        The rows of the first places; N where a list is shorter.
    form : Form
        The strategy's columns over the same rows.
    block : Block
        The weights of every candidate.
    unit : int64[Q]
        Numbers what varies as one: queries that ask the same count together.
    """

    queries: tuple[str, ...]
    entries: tuple[str, ...]
    offsets: Indices
    entry: Ints
    features: Floats
    names: tuple[str, ...]
    top: Ints
    form: Form
    block: Block
    unit: Indices

    def __len__(self) -> int:
        return len(self.top)

    @property
    def rows(self) -> int:
        """N, the number of rows."""
        return len(self.entry)

    @cached_property
    def query(self) -> Indices:
        """The query of each row; int64[N]."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets)).astype(np.int64)

    @cached_property
    def keys(self) -> Indices:
        """Query * (E + 1) + entry of each row, ascending; int64[N]."""
        return self.query * (len(self.entries) + 1) + self.entry

    def find(self, query: Indices, entry: Indices) -> Indices:
        """The row of each (query, entry) pair; -1 where no candidate list could hold it."""
        wanted = query * (len(self.entries) + 1) + entry
        at = np.minimum(np.searchsorted(self.keys, wanted), max(self.rows - 1, 0))
        found: Indices = np.where(self.keys[at] == wanted, at, -1) if self.rows else np.full(len(wanted), -1)
        return found

    def values(self, gains: Floats, queries: Indices) -> Floats:
        """float64[G, n]: the discounted sum of the gains (float64[N]) of each candidate's first places."""
        return discounted(self.top, gains, queries)

    def among(self, allowed: Bools) -> Ints:
        """int32[G, Q, PLACES]: the first places of lists that are reduced to some rows (bool[N])."""
        columns = np.ascontiguousarray(self.form.columns)
        return _first(columns, self.offsets, self.block.weights, PLACES, PLACES, allowed)

    def ideal(self, gains: Floats, queries: Indices) -> float:
        """The mean over the queries of the discounted sum of the ten largest gains: what 1 means in a gain."""
        if not len(queries):
            return 1.0
        every, one = np.ones(self.rows, dtype=bool), np.ones((1, 1))
        best = _first(gains[None, :], self.offsets, one, PLACES, PLACES, every)
        return max(float(discounted(best, gains, queries).mean()), 1e-9)

    def grades(self, judgments: Judgments) -> Floats:
        """float64[N]: the grade of each row over the ideal of its query, so that `values` are nDCG@10."""
        ideal = judgments.ideal_at(PLACES)[self.query]
        grades = np.maximum(judgments.grades(self.query, self.entry), 0.0)
        return np.asarray(np.divide(grades, ideal, out=np.zeros(self.rows), where=ideal > 0), dtype=np.float64)

    def config(self, candidate: int) -> SearchConfig:
        """The configuration of a candidate."""
        return self.block.config if candidate == 0 else self.block.written(candidate)


def lists_of(
    table: SignalTable,
    config: SearchConfig,
    columns: int = COLUMNS,
    weights: Callable[[Form], Floats] | None = None,
) -> CandidateLists:
    """Lay weights out around a configuration and rank every query of a table under each of them.

    `weights` gives float64[G, S] to be laid out instead, the first row being those used today. Raises ConfigError
    for a finish stage under which weights cannot be searched (see `kernel.Form`).
    """
    (form,) = ungraded(table, config, [config.effective], Judgments.of({}, table.queries, table.entries))
    branches = movable(form)
    laid = weights(form) if weights else shares(form, branches, columns) * totals(form, branches)
    entry = np.where(form.row < 0, len(table.entries), table.entry[form.row]).astype(np.int32)
    depth = PLACES if form.limit is None else min(PLACES, form.limit)
    every = np.ones(len(form), dtype=bool)
    top = _first(np.ascontiguousarray(form.columns), form.offsets, laid, PLACES, depth, every)
    names, features = _features(table.at_depth(config.depths), config, form)
    block = Block(config, form.slot, laid, max(map(len, branches), default=0))
    alone = np.arange(len(table.queries), dtype=np.int64)
    return CandidateLists(
        table.queries, table.entries, form.offsets, entry, features, names, top, form, block, alone
    )


def discounted(top: Ints, gains: Floats, queries: Indices) -> Floats:
    """float64[G, n]: the discounted sums of gains over lists int32[G, Q, PLACES]."""
    padded = np.append(gains, 0.0)
    found = np.empty((len(top), len(queries)))
    for at in range(len(top)):
        found[at] = padded[top[at, queries]] @ DISCOUNT
    return found


def _features(table: SignalTable, config: SearchConfig, form: Form) -> tuple[tuple[str, ...], Floats]:
    """The signals of the strategy over the form's rows, each between 0 and 1 within a query."""
    names, columns = [], []
    every = np.ones(len(table), dtype=bool)
    for leaf in leaves(config.effective):
        values = leaf.compile(table, every).branches[0].columns[0].values[form.row]
        names.append(str(leaf))
        columns.append(_scaled(np.where(form.row < 0, np.nan, values), form.offsets))
    return tuple(names), np.stack(columns, axis=1)


def _scaled(values: Floats, offsets: Indices) -> Floats:
    """Values brought to 0..1 within each query; 0 where there is none, and where all are alike."""
    scaled = np.zeros(len(values))
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = values[begin:end]
        known = np.isfinite(own)
        if known.any():
            low, high = own[known].min(), own[known].max()
            if high > low:
                scaled[begin:end][known] = (own[known] - low) / (high - low)
    return scaled


@compiled
def _first(columns: Floats, offsets: Indices, weights: Floats, places: int, depth: int, allowed: Bools) -> Ints:
    """int32[G, Q, places]: the allowed rows of the first `depth` places, best first, ties by row; N beyond."""
    count, size = weights.shape[0], len(offsets) - 1
    found = np.full((count, size, places), columns.shape[1], np.int32)
    best = np.empty(places)
    for g in range(count):
        for q in range(size):
            held = 0
            for row in range(offsets[q], offsets[q + 1]):
                if not allowed[row]:
                    continue
                score = 0.0
                for s in range(columns.shape[0]):
                    score += weights[g, s] * columns[s, row]
                if held == depth and score <= best[held - 1]:
                    continue
                at = min(held, depth - 1)
                held = min(held + 1, depth)
                while at > 0 and best[at - 1] < score:
                    best[at] = best[at - 1]
                    found[g, q, at] = found[g, q, at - 1]
                    at -= 1
                best[at] = score
                found[g, q, at] = row
    return found
