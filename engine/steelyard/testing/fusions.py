"""What every strategy promises, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial, reduce
from itertools import islice
from math import prod
from operator import add, mul
from statistics import median

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard.finish import order
from steelyard.fusion import (
    FAMILIES,
    Column,
    Explanation,
    Expr,
    Plan,
    Signal,
    all_variants,
    compile_plan,
    fuse,
    near_variants,
    parse_strategy,
)
from steelyard.retrievers import FETCHED, RETRIEVERS
from steelyard.table.signal_table import SignalTable
from steelyard.testing.tables import random_table, renamed, same_bits, select_queries, select_rows

SEEDS = range(12)
MOST_VARIANTS = 2_000
"""Combinations that are counted."""


@cache
def _table(seed: int, ties: bool) -> SignalTable:
    return random_table(np.random.default_rng(seed), ties=ties)


def _tables(*, ties: bool = True) -> list[SignalTable]:
    return [_table(seed, ties) for seed in SEEDS]


@cache
def _alone(seed: int) -> list[SignalTable]:
    """Each query of a table that may have ties, as live search has it."""
    return [select_queries(_table(seed, True), [q]) for q in range(len(_table(seed, True).queries))]


def _plans(plan: Plan) -> Iterator[Plan]:
    """The plan and all plans nested in it."""
    yield plan
    for branch in plan.branches:
        for column in branch.columns:
            yield from _plans_in(column)


def _plans_in(column: Column) -> Iterator[Plan]:
    if column.inner is not None:
        yield from _plans(column.inner)
    for part in column.parts:
        yield from _plans_in(part)


def _nodes(expr: Expr) -> Iterator[Expr]:
    """The expression and every one in it."""
    yield expr
    for child in expr.children:
        yield from _nodes(child)


def _refused(expr: Expr, weights: list[float]) -> bool:
    try:
        expr.with_weights(weights)
    except ConfigError:
        return True
    return False


def _ties(table: SignalTable, plan: Plan) -> bool:
    """Whether two rows of a query have the same score."""
    pairs = np.stack([table.query, plan.scores()], axis=1)[~np.isnan(plan.scores())]
    return len(np.unique(pairs, axis=0)) < len(pairs)


COMBINED: dict[str, Callable[[list[float]], float]] = {
    "sum": partial(reduce, add),
    "product": partial(reduce, mul),
    "max": max,
    "min": min,
    "median": median,
}


def recomputed(tree: Explanation) -> float:
    """The value of an explanation from its leaves, in the order in which the engine adds and multiplies."""
    parts = [recomputed(part) for part in tree.parts]
    return tree.value if tree.combine == "given" else COMBINED[tree.combine](parts)


class FusionContract:
    """Inherit, and give a fixture `strategy`: its text, over any fetched and derived signals."""

    def test_it_prints_and_parses_back(self, strategy: str) -> None:
        """``parse(print(x)) == x``, and the print of that is the same text."""
        read = parse_strategy(strategy)

        assert parse_strategy(str(read)) == read
        assert str(parse_strategy(str(read))) == str(read)

    def test_every_family_is_named(self, strategy: str) -> None:
        """By the word that its text begins with, under which the grammar finds it, and by a name for people."""
        for node in _nodes(parse_strategy(strategy)):
            assert node.shown_as
            if not isinstance(node, Signal):
                assert str(node).partition("(")[0] == node.keyword
                assert FAMILIES[node.keyword] is type(node)

    def test_it_can_be_rebuilt(self, strategy: str) -> None:
        """Over its own children it is the same; over others it holds those, under the weights of its own."""
        for node in _nodes(parse_strategy(strategy)):
            others = tuple(parse_strategy("vector") for _ in node.children)

            assert node.with_children(node.children) == node
            if others:
                assert node.with_children(others).children == others
                if not (node.routes or node.wraps):
                    assert node.with_children(others).weights == node.weights

    def test_its_weights_can_be_tuned(self, strategy: str) -> None:
        """They are read and replaced in one order, each decides some score, and no other number is taken."""
        read = parse_strategy(strategy)
        other = read.with_weights([weight + 1 for weight in read.weights])

        assert read.with_weights(read.weights) == read
        assert other.weights == tuple(weight + 1 for weight in read.weights)
        assert other.with_weights(read.weights) == read
        assert parse_strategy(str(other)) == other
        assert _refused(read, [*read.weights, 1.0])

    def test_scores_are_linear_in_its_weights(self, strategy: str) -> None:
        """What the search for weights rests on: a plan's columns and rows stay when weights change."""
        read = parse_strategy(strategy)
        for table in _tables():
            plain, moved = (
                compile_plan(table, read.with_weights([weight + add for weight in read.weights])) for add in (0, 2)
            )
            for first, second in zip(plain.branches, moved.branches, strict=True):
                assert same_bits(first.rows, second.rows)
                for left, right in zip(first.columns, second.columns, strict=True):
                    assert same_bits(left.values, right.values)

    def test_all_its_variants_are_tried(self, strategy: str) -> None:
        """Tuning tries it and every value of its own parameters, alone and inside another family.

        Variants keep its children and weights, print and parse back, and differ.
        """
        read = parse_strategy(strategy)
        variants = list(read.variants())

        assert read in variants
        assert len(set(variants)) == len(variants)
        assert all(other.weights == read.weights and parse_strategy(str(other)) == other for other in variants)
        if not isinstance(read, Signal):
            assert all(other.children == read.children for other in variants)
        assert set(variants) <= set(near_variants(read))
        around = parse_strategy(f"rrf({read}, fts)")
        tried = {other.children[0] for other in near_variants(around)}
        assert set(variants) <= tried

    def test_every_combination_of_variants_is_tried(self, strategy: str) -> None:
        """As many as the product of what each of its parts has."""
        read = parse_strategy(strategy)
        expected = prod(len(list(node.variants())) for node in _nodes(read))

        assert sum(1 for _ in islice(all_variants(read), MOST_VARIANTS)) == min(expected, MOST_VARIANTS)

    def test_it_ranks_exactly_its_members(self, strategy: str) -> None:
        """Scores are NaN exactly outside them, and finite within."""
        read = parse_strategy(strategy)
        for table in _tables():
            scores = fuse(table, read)

            assert scores.shape == (len(table),)
            members = read.members(table, read.everywhere(table))
            assert np.array_equal(np.isfinite(scores), members)
            assert np.array_equal(np.isnan(scores), ~members)

    def test_no_row_belongs_to_two_branches(self, strategy: str) -> None:
        """So that a plan has one score for a row."""
        for table in _tables():
            for plan in _plans(compile_plan(table, parse_strategy(strategy))):
                assert (
                    sum((branch.rows.astype(int) for branch in plan.branches), np.zeros(len(table))).max(initial=0)
                    <= 1
                )

    def test_the_same_table_gives_the_same_bits(self, strategy: str) -> None:
        """Also when the strategy is read anew."""
        for table in _tables():
            assert same_bits(fuse(table, parse_strategy(strategy)), fuse(table, parse_strategy(strategy)))

    def test_a_query_does_not_depend_on_the_others(self, strategy: str) -> None:
        """Each query alone, as in live search, gives the same bits as all together."""
        read = parse_strategy(strategy)
        for seed, table in zip(SEEDS, _tables(), strict=True):
            parts = [fuse(alone, read) for alone in _alone(seed)]

            assert same_bits(np.concatenate(parts), fuse(table, read))

    def test_rows_beyond_the_depth_change_nothing(self, strategy: str) -> None:
        """A table masked to a depth gives what a table of only the rows within it gives."""
        read = parse_strategy(strategy)
        for seed, table in zip(SEEDS, _tables(), strict=True):
            rng = np.random.default_rng(seed)
            masked = table.at_depth({name: int(rng.integers(1, 12)) for name in table.positions})
            rows = np.any([~np.isnan(masked.columns[name]) for name in masked.positions], axis=0)
            scores = fuse(masked, read)

            assert same_bits(scores[rows], fuse(select_rows(masked, rows), read))
            assert np.isnan(scores[~rows]).all()

    def test_what_is_not_needed_is_not_read(self, strategy: str) -> None:
        """A query keeps its scores without the signals that `needs` says it can do without."""
        read = parse_strategy(strategy)
        for seed, table in zip(SEEDS, _tables(), strict=True):
            retrievers = sorted(RETRIEVERS & table.columns.keys())
            needs = read.needs(table, retrievers)
            scores = fuse(table, read)
            for q, alone in enumerate(_alone(seed)):
                kept = {n: c for n, c in alone.columns.items() if n in needs and needs[n][q]}

                assert needs.keys() <= FETCHED
                assert same_bits(fuse(replace(alone, columns=kept), read), scores[table.query == q])

    def test_names_of_entries_decide_ties_only(self, strategy: str) -> None:
        """Where no two rows tie in a signal or an inner fusion, renaming entries leaves all scores alone.

        Sums may be taken in another order, so scores agree to 1e-12.
        """
        read = parse_strategy(strategy)
        for seed, table in zip(SEEDS, _tables(ties=False), strict=True):
            _, *inner = _plans(compile_plan(table, read))
            if any(_ties(table, plan) for plan in inner):
                continue
            moved, before = renamed(table, np.random.default_rng(seed).permutation(len(table.entries)))

            assert np.allclose(fuse(moved, read), fuse(table, read)[before], rtol=0, atol=1e-12, equal_nan=True)

    def test_rows_come_out_by_score_then_by_id(self, strategy: str) -> None:
        """The one tie rule, against Python's own sort."""
        for table in _tables():
            scores = fuse(table, parse_strategy(strategy))
            ranking = order(table, scores)
            for q, (begin, end) in enumerate(zip(ranking.offsets[:-1], ranking.offsets[1:], strict=True)):
                rows = [row for row in range(len(table)) if table.query[row] == q and not np.isnan(scores[row])]
                best = sorted(rows, key=lambda row: (-scores[row], table.entries[table.entry[row]].encode()))

                assert ranking.row[begin:end].tolist() == best

    def test_the_explanation_adds_up_to_the_score(self, strategy: str) -> None:
        """Exactly, for every ranked row, at every level; rows that are not ranked have none."""
        for table in _tables():
            for plan in _plans(compile_plan(table, parse_strategy(strategy))):
                scores = plan.scores()
                for row in range(len(table)):
                    tree = plan.explain(row)
                    if tree is None:
                        assert np.isnan(scores[row])
                    else:
                        assert recomputed(tree) == tree.value == scores[row]

    def test_what_is_left_without_a_signal_does_not_mention_it(self, strategy: str) -> None:
        """It is a strategy again, or nothing."""
        read = parse_strategy(strategy)
        for name in read.signals:
            left = read.without({name})

            assert left is None or (name not in left.signals and parse_strategy(str(left)) == left)
        assert read.without(()) == read
