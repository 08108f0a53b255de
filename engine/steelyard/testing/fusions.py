"""What every strategy promises, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from steelyard.finish import order
from steelyard.fusion import Plan, compile_plan, fuse, parse_strategy
from steelyard.table import FETCHED, RETRIEVERS, SignalTable
from steelyard.testing.tables import random_table, renamed, same_bits, select_queries, select_rows

SEEDS = range(12)


@cache
def _table(seed: int, ties: bool) -> SignalTable:
    return random_table(np.random.default_rng(seed), ties=ties)


def _tables(*, ties: bool = True) -> list[SignalTable]:
    return [_table(seed, ties) for seed in SEEDS]


def _plans(plan: Plan) -> Iterator[Plan]:
    """The plan and all plans nested in it."""
    yield plan
    for branch in plan.branches:
        for column in branch.columns:
            if column.inner is not None:
                yield from _plans(column.inner)


def _ties(table: SignalTable, plan: Plan) -> bool:
    """Whether two rows of a query have the same score."""
    pairs = np.stack([table.query, plan.scores()], axis=1)[~np.isnan(plan.scores())]
    return len(np.unique(pairs, axis=0)) < len(pairs)


class FusionContract:
    """Inherit, and give a fixture `strategy`: its text, over any fetched and derived signals."""

    def test_it_prints_and_parses_back(self, strategy: str) -> None:
        """``parse(print(x)) == x``, and the print of that is the same text."""
        read = parse_strategy(strategy)

        assert parse_strategy(str(read)) == read
        assert str(parse_strategy(str(read))) == str(read)

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
        for table in _tables():
            parts = [fuse(select_queries(table, [q]), read) for q in range(len(table.queries))]

            assert same_bits(np.concatenate(parts), fuse(table, read))

    def test_rows_beyond_the_depth_change_nothing(self, strategy: str) -> None:
        """A table masked to a depth gives what a table of only the rows within it gives."""
        read = parse_strategy(strategy)
        for seed, table in zip(SEEDS, _tables(), strict=True):
            rng = np.random.default_rng(seed)
            masked = table.at_depth({name: int(rng.integers(1, 12)) for name in table.positions})
            found = np.any([~np.isnan(masked.columns[name]) for name in masked.positions], axis=0)
            scores = fuse(masked, read)

            assert same_bits(scores[found], fuse(select_rows(masked, found), read))
            assert np.isnan(scores[~found]).all()

    def test_what_is_not_needed_is_not_read(self, strategy: str) -> None:
        """A query keeps its scores without the signals that `needs` says it can do without."""
        read = parse_strategy(strategy)
        for table in _tables():
            retrievers = sorted(RETRIEVERS & table.columns.keys())
            needs = read.needs(table, retrievers)
            scores = fuse(table, read)
            for q in range(len(table.queries)):
                alone = select_queries(table, [q])
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
                        assert tree.recomputed() == tree.value == scores[row]

    def test_what_is_left_without_a_signal_does_not_mention_it(self, strategy: str) -> None:
        """It is a strategy again, or nothing."""
        read = parse_strategy(strategy)
        for name in read.signals():
            left = read.without({name})

            assert left is None or (name not in left.signals() and parse_strategy(str(left)) == left)
        assert read.without(()) == read
