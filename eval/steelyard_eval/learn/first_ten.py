"""The pairs of query and entry that are learned about, and which of them each candidate shows in its first ten.

Rows are pairs in CSR order, those that our search finds and those that a log showed, whatever engine found them.
Nothing here reads an act or a label, so the candidates are the same whatever was logged.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices, Ints, compiled
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.grid import Block
from steelyard_eval.candidates.linear_form import Form, formed
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.replay import replay

PLACES = 10  # places of a list that are learned from, and that gains are summed over
DISCOUNT: Floats = 1.0 / np.log2(np.arange(2, PLACES + 2))


@dataclass(frozen=True)
class LoggedPairs:
    """N pairs of Q queries and E entries."""

    queries: tuple[str, ...]
    entries: tuple[str, ...]  # ids, by bytes
    offsets: Indices  # int64[Q+1]
    entry: Indices  # int64[N]: the rows of query q are ``offsets[q]:offsets[q+1]``, ascending by entry
    features: Floats  # float64[N, F]: 0 to 1 over a query's rows, 0 where a signal says nothing of the row
    names: tuple[str, ...]  # F signals
    unit: Indices  # int64[Q]: numbers what varies as one: queries that ask the same count together

    @classmethod
    def of(
        cls,
        table: SignalTable,
        signals: Sequence[str],
        unit: Indices,
        shown: tuple[Indices, Indices] | None = None,
    ) -> "LoggedPairs":
        """The rows of a recording, and the pairs that were `shown` (queries and entries, int64[K] each).

        `signals` are expressions of one signal, such as ``bm25``; those that tell no entries apart are left out.
        """
        size = len(table.entries)
        recorded = table.query.astype(np.int64) * size + table.entry
        every = recorded if shown is None else np.union1d(recorded, shown[0] * size + shown[1])
        query, entry = every // size, every % size
        offsets = np.searchsorted(query, np.arange(len(table.queries) + 1)).astype(np.int64)
        columns = {name: _column(table, name, np.searchsorted(every, recorded), offsets) for name in signals}
        kept = tuple(name for name, values in columns.items() if values.any())
        features = np.stack([columns[name] for name in kept], axis=1) if kept else np.zeros((len(every), 0))
        return cls(table.queries, table.entries, offsets, entry, features, kept, unit)

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
        """Query * E + entry of each row, ascending; int64[N]."""
        return self.query * len(self.entries) + self.entry

    def find(self, query: Indices, entry: Indices) -> Indices:
        """The row of each (query, entry) pair; -1 where it is none, and for numbers below 0."""
        wanted = np.where((query >= 0) & (entry >= 0), query * len(self.entries) + entry, -2)
        index = np.minimum(np.searchsorted(self.keys, wanted), max(self.rows - 1, 0))
        return np.where(self.keys[index] == wanted, index, -1) if self.rows else np.full(len(wanted), -1)

    def values(self, top: Ints, gains: Floats) -> Floats:
        """float64[..., n]: the discounted sums of gains (float64[N]) over lists of rows, int[..., n, PLACES]."""
        return np.asarray(np.append(gains, 0.0)[top] @ DISCOUNT, dtype=np.float64)

    def ideal(self, gains: Floats) -> Floats:
        """float64[Q]: the discounted sum of the ten largest gains of each query."""
        weight, every = np.ones((1, 1)), gains[None, :]
        rows = _first(every, self.offsets, weight, PLACES)[0]
        return self.values(np.where(rows < self.rows, rows, -1), gains)


def rows_of(pairs: LoggedPairs, table: SignalTable) -> Indices:
    """int64[N' + 1]: the row of `pairs` that each row of another recording is; -1 for none, and at the end."""
    query, entry = ({name: i for i, name in enumerate(names)} for names in (pairs.queries, pairs.entries))
    query_of = np.array([query.get(name, -1) for name in table.queries], dtype=np.int64)
    entry_of = np.array([entry.get(name, -1) for name in table.entries], dtype=np.int64)
    return np.append(pairs.find(query_of[table.query], entry_of[table.entry]), -1)


def first_rows(table: SignalTable, blocks: Iterable[Block], row_of: Indices) -> Iterator[Ints]:
    """Of each setting int32[W, Q, PLACES]: the rows that it shows under each of its weights, best first.

    `row_of` int64[N + 1] says which row of some pairs each row of the recording is (`rows_of`). -1 stands for what
    is no pair, and beyond the end of a list. Neighbours of the same depths share what is computed of the table.
    """
    for depths, alike in groupby(blocks, key=lambda block: block.config.depths):
        masked = table.at_depth(depths)
        for block in alike:
            config = block.config
            try:
                form = unlabelled(masked, config)
            except ConfigError:  # its weights cannot be searched, so it stands alone
                yield top10_rows(table, config, row_of)[None]
                continue
            yield rows_of_form(form, block.placed(form), row_of)


def unlabelled(masked: SignalTable, config: SearchConfig) -> Form:
    """The form of a configuration on a table cut to its depths, without labels; ConfigError where it has none."""
    return formed(
        masked, config.effective, config.finish, Judgments.none(len(masked.queries), len(masked.entries))
    )


def rows_of_form(form: Form, weights: Floats, row_of: Indices) -> Ints:
    """int32[W, Q, PLACES]: the rows that a form shows under each of W weights (`first_rows`)."""
    depth = PLACES if form.limit is None else min(PLACES, form.limit)
    shown = _first(form.columns, form.offsets, weights, depth)
    rows = np.append(np.where(form.row < 0, -1, row_of[form.row]), -1)
    return np.asarray(rows[shown], dtype=np.int32)


def top10_rows(table: SignalTable, config: SearchConfig, row_of: Indices) -> Ints:
    """int32[Q, PLACES]: the rows that a configuration shows (`first_rows`)."""
    ranking = replay(table, config).ranking
    shown = np.full((len(table.queries), PLACES), -1, dtype=np.int32)
    for query, (begin, end) in enumerate(pairwise(ranking.offsets.tolist())):
        rows = row_of[ranking.row[begin:end]][:PLACES]
        shown[query, : len(rows)] = rows
    return shown


def _column(table: SignalTable, name: str, row: Indices, offsets: Indices) -> Floats:
    """A signal over all rows, between 0 and 1 within each query; 0 where there is none, or all are alike."""
    scaled, values = np.zeros(int(offsets[-1])), np.full(int(offsets[-1]), np.nan)
    with suppress(ConfigError, KeyError):
        plan = parse_strategy(name).compile(table, np.ones(len(table), dtype=bool))
        values[row] = plan.branches[0].columns[0].values
    for begin, end in pairwise(offsets.tolist()):
        part = values[begin:end]
        known = np.isfinite(part)
        if known.any():
            low, high = part[known].min(), part[known].max()
            if high > low:
                scaled[begin:end][known] = (part[known] - low) / (high - low)
    return scaled


def _first(columns: Floats, offsets: Indices, weights: Floats, depth: int) -> Ints:
    """int32[G, Q, PLACES]: the rows of the first `depth` places, best first, ties by row; N beyond."""
    first = np.full((len(weights), len(offsets) - 1, PLACES), columns.shape[1], dtype=np.int32)
    loop()(np.ascontiguousarray(columns), offsets, np.ascontiguousarray(weights), depth, first)
    return first


def loop() -> Any:  # noqa: ANN401 -- numba's dispatchers have no type
    """`_fill_first`, compiled."""
    return compiled(_fill_first, "void(f8[:, ::1], i8[::1], f8[:, ::1], i8, i4[:, :, ::1])", "numpy")


def _fill_first(columns: Floats, offsets: Indices, weights: Floats, depth: int, first: Ints) -> None:
    """Fill what `_first` gives: scores are added in the order of the columns."""
    count, size = weights.shape[0], len(offsets) - 1
    best = np.empty(10)
    scores = np.empty(np.diff(offsets).max() if size else 0)
    for q in range(size):
        begin, rows = offsets[q], offsets[q + 1] - offsets[q]
        for g in range(count):
            scores[:rows] = 0.0
            for s in range(columns.shape[0]):
                weight, column = weights[g, s], columns[s, begin : begin + rows]
                for row in range(rows):  # a column at a time, which is compiled to vector instructions
                    scores[row] += weight * column[row]
            held = 0
            for row in range(rows):
                score = scores[row]
                if held == depth and score <= best[held - 1]:
                    continue
                place = min(held, depth - 1)
                held = min(held + 1, depth)
                while place > 0 and best[place - 1] < score:
                    best[place] = best[place - 1]
                    first[g, q, place] = first[g, q, place - 1]
                    place -= 1
                best[place] = score
                first[g, q, place] = begin + row
