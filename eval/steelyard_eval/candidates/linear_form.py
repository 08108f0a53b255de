"""The linear form of a recording when everything except the weights is fixed, which weight search works on.

``score(row) = sum over s of weights[s] * columns[s, row]``. The rows of a query ascend by entry id, or as
`Plan.ties` says, so of two equal scores the smaller row index comes first. Columns are float64 (kernel: float32).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, DataError, quote
from steelyard.config import SearchConfig
from steelyard.finish import Cut, Drop, Files, Merge, Stage
from steelyard.fusion import Branch, Column, Expr, Plan, compile_plan
from steelyard.table.signal_table import SignalTable
from steelyard_eval.measures.metrics import Judgments

MARK = 2.0
"""Plans are compiled with the weights 2, 3, 4 ... to identify the columns of a strategy; 1 is a bare column."""

NONE: Indices = np.zeros(0, dtype=np.int64)
LANES = 128  # configurations that a compiled loop evaluates at once


@dataclass(frozen=True)
class Form:
    """The rows that a strategy ranks, as columns to be weighted, with the grades to measure a ranking by."""

    offsets: Indices  # int64[Q+1]: query q has the ranked rows ``offsets[q]:offsets[q+1]``
    columns: Floats  # float64[S, N]: derived columns times their row factors; 0 on rows of other branches
    labels: tuple[str, ...]  # S names of the columns
    branch: Indices  # int64[S]: the branch of the plan of each: tiers are tuned independently
    weights: Floats  # float64[S]: the weights of the strategy as written
    relevant: Indices  # int64[R], ascending: rows of grade 1 or more
    relevant_offsets: Indices  # int64[Q+1]: those of query q are ``relevant_offsets[q]:relevant_offsets[q+1]``
    grade: Floats  # float64[R]: their grades
    judgments: Judgments  # of the Q queries, with the ideals and the relevant entries that were not returned
    limit: int | None = None  # where the finished list is cut: ranks beyond it count 0
    slot: Indices = field(default_factory=lambda: NONE)
    """int64[S]: the index of each column's weight in the `weights` of the strategy; -1 for the weight 1 of a bare
    column, which is never searched."""
    row: Indices = field(default_factory=lambda: NONE)  # int64[N]: the row of the table; -1 for what `over` added
    tokens: Indices = field(default_factory=lambda: NONE)  # int64[N]: what each takes of a context, where known

    @classmethod
    def of(cls, table: SignalTable, config: SearchConfig, strategy: Expr, judgments: Judgments) -> "Form":
        """Make the form of a strategy at the configuration's depths, over every query of the table.

        Raises DataError when a query has no judgments, ConfigError when the table lacks a signal or depth, or
        when the configuration finishes with more than cuts.
        """
        return next(forms(table, config, [strategy], judgments))

    def over(self, floor: Floats, wanted: Indices, branch: int) -> "Form":
        """The form where rows below a score earn nothing for the queries `wanted`, under any weights.

        `floor` has the score of each. As many rows as the list has places stand at it, behind others, so that
        those below come after the cut. They are irrelevant, and score by a column of weight 1 that never moves.
        Raises ConfigError where lists are not cut.
        """
        if self.limit is None:
            raise ConfigError("weights under a cut of scores need lists that are cut; add the stage cut(10)")
        ends, size = np.arange(self.queries + 1), len(self)
        query = np.concatenate([np.repeat(ends[:-1], np.diff(self.offsets)), np.repeat(wanted, self.limit)])
        order = np.argsort(query, kind="stable")
        columns = np.zeros((len(self.columns) + 1, len(query)))
        columns[:-1, :size], columns[-1, size:] = self.columns, np.repeat(floor, self.limit)
        place = np.empty(len(query), dtype=np.int64)
        place[order] = np.arange(len(query))
        return replace(
            self,
            offsets=np.searchsorted(query[order], ends).astype(np.int64),
            columns=columns[:, order],
            labels=(*self.labels, "cut"),
            branch=np.append(self.branch, branch),
            weights=np.append(self.weights, 1.0),
            relevant=place[self.relevant],
            row=np.concatenate([self.row, np.full(len(wanted) * self.limit, -1)])[order].astype(np.int64),
            tokens=np.concatenate([self.tokens, np.zeros_like(query[size:])])[order] if len(self.tokens) else NONE,
        )

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @cached_property
    def ordering(self) -> Bools:
        """The columns that differ between the rows of any query; bool[S]."""
        begins = self.offsets[:-1][np.diff(self.offsets) > 0]
        if not len(begins):
            return np.zeros(len(self.columns), dtype=bool)
        high, low = (reduce.reduceat(self.columns, begins, axis=1) for reduce in (np.maximum, np.minimum))
        return np.asarray((high > low).any(axis=1), dtype=np.bool_)

    @property
    def queries(self) -> int:
        """Q, the number of queries."""
        return len(self.offsets) - 1

    @cached_property
    def relevant_places(self) -> tuple[Indices, Indices]:
        """int64[R] each: the query of each relevant row, and its number among those of its query."""
        query = np.repeat(np.arange(self.queries), np.diff(self.relevant_offsets))
        return query, np.arange(len(self.relevant)) - self.relevant_offsets[query]

    def spread(self, weights: Floats) -> Floats:
        """Map weights of the whole strategy, float64[W, K], to weights of the columns, float64[W, S].

        A tier that answers none of the queries has no columns here, and a bare column keeps its weight 1.
        """
        return np.column_stack([np.ones(len(weights)), weights])[:, self.slot + 1]

    def scores(self, weights: Floats) -> Floats:
        """Compute the scores with weights float64[S], added in the order of the columns; float64[N]."""
        total = np.zeros(len(self))
        for weight, column in zip(weights, self.columns, strict=True):
            total = total + weight * column
        return total


def forms(
    table: SignalTable, config: SearchConfig, strategies: Iterable[Expr], judgments: Judgments
) -> Iterator[Form]:
    """Iterate over the forms of strategies that differ in more than weights (k, normalisation, half-life ...).

    They share the masked table and what it caches. See `Form.of` for the errors.
    """
    bare = np.flatnonzero(judgments.judged == 0)
    if len(bare):
        raise DataError(
            f"query {quote(table.queries[bare[0]])} and {len(bare) - 1} others have no labels; "
            "record only labelled queries"
        )
    masked = table.at_depth(config.depths)
    for strategy in strategies:
        yield formed(masked, strategy, config.finish, judgments)


def formed(masked: SignalTable, strategy: Expr, stages: Sequence[Stage], judgments: Judgments) -> Form:
    """The form of a strategy on a table that is cut to its depths already."""
    own = np.array(strategy.weights, dtype=np.float64)
    plan = compile_plan(masked, strategy.with_weights(np.arange(len(own)) + MARK))
    plan, limit = finished(masked, plan, stages)
    row = np.flatnonzero(_ranked(plan))
    if (ties := plan.ties(masked)) is not None:
        row = row[np.lexsort((ties[row], masked.query[row]))]
    query = masked.query[row].astype(np.int64)
    grade = judgments.grades(query, masked.entry[row])
    relevant = np.flatnonzero(grade >= 1)
    ends = np.arange(len(masked.queries) + 1)
    parts = [_columns(branch, row) for branch in plan.branches]
    sizes = [len(branch.columns) for branch in plan.branches]
    form = Form(
        offsets=np.searchsorted(query, ends).astype(np.int64),
        columns=np.concatenate([np.zeros((0, len(row))), *parts]),
        labels=tuple(column.label for branch in plan.branches for column in branch.columns),
        branch=np.repeat(np.arange(len(sizes)), sizes).astype(np.int64),
        weights=np.array([weight for branch in plan.branches for weight in branch.weights], dtype=np.float64),
        relevant=relevant.astype(np.int64),
        relevant_offsets=np.searchsorted(query[relevant], ends).astype(np.int64),
        grade=grade[relevant].astype(np.float64),
        judgments=judgments,
        limit=limit,
        row=row.astype(np.int64),
        tokens=NONE if judgments.tokens is None else judgments.tokens[masked.entry[row]],
    )
    for number, branch in enumerate(plan.branches):
        if branch.floor is not None and branch.rows.any():
            asked, first = np.unique(masked.query[branch.rows], return_index=True)
            form = form.over(branch.floor[branch.rows][first], asked.astype(np.int64), number)
    form = replace(form, slot=np.where(form.weights == 1.0, -1, form.weights - MARK).astype(np.int64))
    return replace(form, weights=form.spread(own[None, :])[0])


def finished(table: SignalTable, plan: Plan, stages: Sequence[Stage]) -> tuple[Plan, int | None]:
    """Apply the finish stages to a plan; return it with the last rank that is shown (None when all are).

    Dropped rows leave the plan, and rows merged at a fixed score get a branch of one column. Rows that the guard
    of a cut keeps beyond it count 0 here, because no metric looks further than the cut.
    """
    limit = None
    for stage in stages:
        if isinstance(stage, Cut):
            limit = stage.limit if limit is None else min(limit, stage.limit)
        elif isinstance(stage, Drop):
            plan = _only(plan, table.column(stage.signal) != 0)
        elif isinstance(stage, Files) and stage.instead == "none":
            plan = _only(plan, ~stage.folders(table))
        elif isinstance(stage, Merge):
            rows = ~np.isnan(table.column(stage.retriever)) & ~_ranked(plan)
            column = Column(str(stage), np.full(plan.size, stage.score), "fixed")
            added = Branch(rows, (column,), (1.0,), str(stage))
            plan = Plan(plan.size, (*plan.branches, added) if rows.any() else plan.branches)
        else:
            raise ConfigError(f"cannot search weights with the finish stage {quote(str(stage))}")
    return plan, limit


def _only(plan: Plan, kept: Bools) -> Plan:
    return Plan(plan.size, tuple(replace(branch, rows=branch.rows & kept) for branch in plan.branches))


def _ranked(plan: Plan) -> NDArray[np.bool_]:
    ranked = np.zeros(plan.size, dtype=bool)
    for branch in plan.branches:
        ranked |= branch.rows
    return ranked


def _columns(branch: Branch, row: Indices) -> Floats:
    """float64[columns of the branch, N]: values times factor on the branch's rows, 0 elsewhere."""
    kept = branch.rows[row]
    rows = row[kept]
    made = np.zeros((len(branch.columns), len(row)))
    for into, column in zip(made, branch.columns, strict=True):
        into[kept] = column.values[rows] if branch.factor is None else column.values[rows] * branch.factor[rows]
    return made


def pairs_of(offsets: Indices, relevant: Indices, relevant_offsets: Indices) -> tuple[Indices, Indices, Indices]:
    """Every row of a query beside each relevant row of it: arguments as in `Form`.

    Returns int64[P] the relevant row's index in `relevant`, int64[P] the other row (itself among them), and
    int64[R] where the pairs of each relevant row begin.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(relevant_offsets))
    counts = np.diff(offsets)[query]
    begins = np.cumsum(counts) - counts
    of = np.repeat(np.arange(len(relevant)), counts)
    return of, np.arange(len(of)) + np.repeat(offsets[query] - begins, counts), begins


def movable(form: Form) -> list[Indices]:
    """Return the columns (int64[n]) of each branch that has at least two which affect the order.

    A column that is equal for all rows of each query never affects the order, whatever its weight; one without
    a slot in the strategy keeps its weight, such as the cut that scores are compared with.
    """
    free = form.ordering & (form.slot >= 0) if len(form.slot) else form.ordering
    branches = (np.flatnonzero((form.branch == branch) & free) for branch in np.unique(form.branch))
    return [columns for columns in branches if len(columns) > 1]


def on_simplices(weights: Floats, form: Form, branches: Sequence[Indices]) -> Floats:
    """Weights float64[S] with those of each branch that moves summing to 1, in equal parts where all are 0.

    Raises ConfigError for weights below 0.
    """
    scaled = np.array(weights, dtype=np.float64)
    for branch in branches:
        if not (np.isfinite(scaled[branch]) & (scaled[branch] >= 0)).all():
            raise ConfigError(f"weights {quote(str(scaled[branch].tolist()))} must all be at least 0")
        total = scaled[branch].sum()
        scaled[branch] = scaled[branch] / total if total > 0 else 1.0 / len(branch)
    return scaled
