"""Many configurations on the same queries: every setting under many weights, as two matrices of per-query values.

The weights are laid out before any label is read, so a choice among the columns can be made again inside any fold.
Values are those of the float32 kernel, which is for choosing; what is reported is replayed in float64.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import cast

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.config import SearchConfig
from steelyard.finish import Cut
from steelyard.fusion.node import RECIPROCAL, Linear
from steelyard.memory.query import Query
from steelyard.table.signal_table import KEPT_ROWS, SignalTable
from steelyard_eval.candidates.kernel import DEEPEST, Kernel, Singles, composite, parts_for, smoothing
from steelyard_eval.candidates.linear_form import Form, forms, movable, on_simplices
from steelyard_eval.candidates.settings import config_key, setting_key, texts_with_shares, with_shares
from steelyard_eval.common.console import bar
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording.replay import only, replay

Qrels = Mapping[str, Mapping[str, int]]
ENDS = (0.001, 0.002, 0.003, 0.004, 0.006, 0.008, 0.010, 0.012, 0.015, 0.018)
"""Shares near 0, and near 1, where a small weight already decides ties."""
LINE: Floats = np.unique(np.round([*ENDS, *(1 - np.array(ENDS)), *np.arange(1, 50) / 50], 6))
"""The 69 shares of the first of two weights; at 0 a list would only be filled up, in the order of ties."""
COLUMNS = 1600  # weights laid out for one family: fewer a setting where it has many
DIGITS = 4  # decimals of written weights
SMOOTHED = 2
"""Weights of one strategy that move together; more are too many to smooth along: the metric chooses better."""


@dataclass(frozen=True)
class Block:
    """One setting under W weights: float64[W, S] of the columns of its form, and their slots in the strategy."""

    config: SearchConfig
    slot: Indices
    weights: Floats
    moving: int  # weights that move together, in the largest branch

    @classmethod
    def of(cls, config: SearchConfig, form: Form, columns: int) -> "Block":
        """So many weights around those of a setting, its own first; `form` is its form."""
        branches = movable(form)
        weights = shares(form, branches, columns) * totals(form, branches)
        return cls(config, form.slot, weights, max(map(len, branches), default=0))

    @classmethod
    def alone(cls, config: SearchConfig) -> "Block":
        """A setting under its own weights, which do not move."""
        weights = np.array(config.strategy.weights, dtype=np.float64)
        return cls(config, np.full(len(weights), -1), weights[None, :], 0)

    def placed(self, form: Form) -> Floats:
        """float64[W, S']: the weights for the columns of its form on another recording.

        A branch that no query there reaches has no columns; one that only they reach has the weights as written.
        """
        weights = np.repeat(form.weights[None, :], len(self.weights), axis=0)
        columns = {slot: column for column, slot in enumerate(self.slot.tolist()) if slot >= 0}
        for column, slot in enumerate(form.slot.tolist()):
            if slot in columns:
                weights[:, column] = self.weights[:, columns[slot]]
        return weights

    def written(self, row: int) -> SearchConfig:
        """The configuration with the weights of one row, in four decimals."""
        return self.config.with_strategy(self.config.strategy.with_weights(self._rows[row]))

    @cached_property
    def _rows(self) -> Floats:
        """float64[W, n]: the weights of the strategy in each row."""
        whole = np.repeat([self.config.strategy.weights], len(self.weights), axis=0).astype(np.float64)
        moved = self.slot >= 0
        whole[:, self.slot[moved]] = self.weights[:, moved]
        return np.round(whole, DIGITS)

    @cached_property
    def key(self) -> str:
        """The name of the first row in tables of other collections."""
        return config_key(self.written(0))

    @cached_property
    def keys(self) -> list[str]:
        """The name of every row."""
        setting = setting_key(self.config)
        if self.config.by_intent:
            return [f"{setting} {with_shares(self.written(row).effective)}" for row in range(len(self.weights))]
        return [f"{setting} {text}" for text in texts_with_shares(self.config.strategy, self._rows.tolist())]


@dataclass(frozen=True)
class Grid:
    """C configurations on the Q queries of a recording."""

    blocks: tuple[Block, ...]  # the settings in order, each with its weights, its own first
    metric: Singles  # float32[C, Q], the metric at the configurations' own limit
    composite: Singles  # float32[C, Q], lists of 100, smoothed along the weight of each setting

    def __len__(self) -> int:
        return len(self.metric)

    @classmethod
    def joined(cls, parts: "Sequence[Grid]") -> "Grid":
        """Several grids over the same queries as one."""
        return cls(
            tuple(block for part in parts for block in part.blocks),
            np.concatenate([part.metric for part in parts]),
            np.concatenate([part.composite for part in parts]),
        )

    @cached_property
    def starts(self) -> Indices:
        """int64[blocks + 1]: where the candidates of each block begin."""
        return np.concatenate(([0], np.cumsum([len(block.weights) for block in self.blocks]))).astype(np.int64)

    @property
    def steadier(self) -> Singles:
        """float32[C, Q]: what settings of one strategy are judged by: the composite if it was smoothed."""
        return self.metric if max(block.moving for block in self.blocks) > SMOOTHED else self.composite

    def config(self, candidate: int) -> SearchConfig:
        """The configuration of a candidate; the weights of a sum sum to 1 where nothing depends on their scale."""
        block = int(np.searchsorted(self.starts, candidate, side="right")) - 1
        config = self.blocks[block].written(candidate - int(self.starts[block]))
        strategy, total, shape = config.strategy, sum(config.strategy.weights), config.strategy.describe()
        free = isinstance(shape, Linear) and shape.scale != RECIPROCAL
        if not free or total <= 0 or not all(isinstance(stage, Cut) for stage in config.finish):
            return config
        return config.with_strategy(
            strategy.with_weights([round(weight / total, DIGITS) for weight in strategy.weights])
        )

    def only(self, kept: Bools) -> "Grid":
        """The candidates where bool[C] is true, in order; at least one."""
        parts = np.split(kept, self.starts[1:-1])
        blocks = [
            replace(block, weights=block.weights[rows]) for block, rows in zip(self.blocks, parts, strict=True)
        ]
        left = tuple(block for block in blocks if len(block.weights))
        return Grid(left, self.metric[kept], self.composite[kept])

    def keys(self, known: Container[str]) -> list[str]:
        """The names of the candidates in tables of other collections; empty where their setting is not `known`."""
        names: list[str] = []
        for block in self.blocks:
            there = block.key in known
            names += block.keys if there else [""] * len(block.weights)
        return names


@dataclass(frozen=True)
class LabelledRecording:
    """A recording with the judgments of its queries."""

    table: SignalTable
    judgments: Judgments

    @classmethod
    def of(cls, qrels: Qrels, table: SignalTable, tokens: Mapping[str, int] | None = None) -> "LabelledRecording":
        """The recording with what labels say of it; `tokens` as a data set has."""
        return cls(table, Judgments.of(qrels, table.queries, table.entries, tokens))

    def only(self, queries: Sequence[Query], qrels: Qrels) -> "LabelledRecording":
        """The part of some of its queries, for metrics of places."""
        return LabelledRecording.of(qrels, only(self.table, [query.id for query in queries]))


@dataclass(frozen=True)
class LabelScorer:
    """Measures candidates by a metric of the labels."""

    metric: Measure

    def grid(self, known: LabelledRecording, settings: Sequence[SearchConfig], columns: int = COLUMNS) -> Grid:
        """Every setting under its own weights and many others, over all queries of the recording.

        Raises ConfigError for a metric or a finish stage that the kernel cannot search (see `kernel.Form`).
        """
        table, judgments = known.table, known.judgments
        kept = table.derived.setdefault("grids", [])
        labels = (judgments.key, judgments.grade, judgments.relevant, judgments.ideal)
        asked = (tuple(settings), self.metric, columns, [part.tobytes() for part in labels])
        if found := next((cached for key, cached in kept if key == asked), None):
            return cast(Grid, found)
        made, each = _forms(table, settings, judgments), columns // len(settings)
        shown = bar("laying out weights", settings)
        result = Grid.joined([_of(config, next(made), self.metric, each, len(settings)) for config in shown])
        if len(table) <= KEPT_ROWS:  # for the next command on this recording
            kept.append((asked, result))
        return result

    def alone(self, known: LabelledRecording, config: SearchConfig) -> Grid:
        """One configuration as it is, by replay: for one whose weights cannot be searched."""
        values, steady = measured(known, config, self.metric)
        return Grid((Block.alone(config),), values[None, :].astype(np.float32), steady[None, :].astype(np.float32))


def measured(known: LabelledRecording, config: SearchConfig, metric: Measure) -> tuple[Floats, Floats]:
    """float64[Q] each: the metric of one configuration at its own limit, and its composite, both by replay."""
    parts, table, judgments = parts_for(metric), known.table, known.judgments
    deep = replay(table, config.with_limit(max(config.limit, DEEPEST))).metrics(judgments, parts)
    return replay(table, config).metrics(judgments, [metric])[metric], composite(deep, parts)


def _forms(table: SignalTable, settings: Iterable[SearchConfig], judgments: Judgments) -> Iterator[Form]:
    """The form of each setting at the composite's depth, one at a time: together they would not fit in memory."""
    for _, alike in groupby(settings, key=lambda config: config.depths):
        configs = list(alike)
        deep = configs[0].with_limit(max(configs[0].limit, DEEPEST))
        yield from forms(table, deep, [config.effective for config in configs], judgments)


def _of(config: SearchConfig, form: Form, metric: Measure, columns: int, alike: int) -> Grid:
    branches, parts = movable(form), parts_for(metric)
    block = Block.of(config, form, columns)
    weights = block.weights
    values = Kernel.of(form, parts).values(weights, alike=max(10, alike))
    smooth = composite(values, parts)
    if len(branches) == 1 and len(branches[0]) == 2:
        smooth = smoothing(shares(form, branches, columns)[:, branches[0][0]]) @ smooth
    limit = min((stage.limit for stage in config.finish if isinstance(stage, Cut)), default=None)
    shallow = limit is not None and limit < (metric.cutoff or DEEPEST)
    shown = replace(form, limit=limit)
    raw = Kernel.of(shown, [metric]).values(weights)[metric] if shallow or metric not in values else values[metric]
    return Grid((block,), raw.astype(np.float32), smooth.astype(np.float32))


def shares(form: Form, branches: Sequence[Indices], columns: int) -> Floats:
    """float64[W, S]: weights with those of each branch that moves summing to 1, the form's own first."""
    start = on_simplices(form.weights, form, list(branches))
    if not branches:
        return start[None, :]
    if len(branches) == 1 and len(branches[0]) == 2:
        first, last = branches[0]
        line = LINE if columns >= len(LINE) else LINE[::2]
        line = line[line != np.round(start[first], 6)]
        rows = np.repeat(start[None, :], len(line) + 1, axis=0)
        rows[1:, first], rows[1:, last] = line, 1 - line
        return rows
    return np.vstack([start, *_corners(start, branches), _drawn(start, branches, columns)])


def _corners(start: Floats, branches: Sequence[Indices]) -> Iterator[Floats]:
    """Each signal nearly alone in its branch, and each at a tenth of what it has, the others as they are.

    No weight is 0: what only that retriever finds would be added in the order of ties.
    """
    for branch in branches:
        for column in branch:
            alone, less = start.copy(), start.copy()
            alone[branch] = 0.99 * (branch == column) + 0.01 * start[branch]
            less[column] /= 10
            less[branch] /= less[branch].sum() or 1.0
            yield alone
            yield less


def _drawn(start: Floats, branches: Sequence[Indices], draws: int) -> Floats:
    """Mixtures drawn evenly from each simplex, every second halfway to where the weights are.

    Branches of equal size, such as intents, share their draws in the first half and have their own in the second.
    """
    rows = np.repeat(start[None, :], draws, axis=0)
    own_draws = np.random.default_rng(0)
    for branch in branches:
        drawn = np.random.default_rng(len(branch)).dirichlet(np.ones(len(branch)), draws)
        drawn[draws // 2 :] = own_draws.dirichlet(np.ones(len(branch)), draws - draws // 2)
        drawn[::2] = (drawn[::2] + start[branch]) / 2
        rows[:, branch] = drawn
    return rows


def totals(form: Form, branches: Sequence[Indices]) -> Floats:
    """float64[S]: the sum of the written weights of each branch, so that scores keep their scale."""
    total = np.ones(len(form.weights))
    for branch in branches:
        total[branch] = form.weights[branch].sum() or 1.0
    return total
