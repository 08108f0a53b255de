"""The table: ranks under the one tie rule, masks of depth, reductions within a query."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from steelyard import Entry, Query
from steelyard.base.errors import ConfigError
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard.table.signal_table import NO_FACTS, TagSets, count_rows, per_query, ranks
from steelyard.testing import random_table, same_bits

seeds = st.integers(0, 2**32 - 1)


def chosen(seed):
    """A random table, one of its columns, and some of the rows where that has a value."""
    rng = np.random.default_rng(seed)
    table = random_table(
        rng, queries=int(rng.integers(0, 7)), entries=int(rng.integers(1, 20)), columns=("fts", "bm25")
    )
    values = table.columns["fts"] if "fts" in table.columns else np.zeros(len(table))
    return table, values, ~np.isnan(values) & (rng.random(len(table)) < 0.8)


def by_query(table, rows):
    """For each query the indices of its given rows, found without the table's own arithmetic."""
    return [[row for row in range(*ends) if rows[row]] for ends in pairwise(table.offsets)]


def joined(lists, scorers=None):
    """The table of one query over these lists."""
    return join([Query("t", id="q")], [0.0], [lists], scorers or {}, lambda ids, _: [Entry(i) for i in ids])


def listed(**lists):
    """One query over the given lists, written as ids best first with scores that descend."""
    return joined(
        {n: [ScoredId(i, 9.0 - at, at + 1) for at, i in enumerate(ids.split())] for n, ids in lists.items()}
    )


class TestRanks:
    @given(seeds)
    def test_ranks_are_those_of_a_plain_sort_by_score_then_id(self, seed):
        table, values, rows = chosen(seed)
        expected = np.full(len(table), np.nan)
        for own in by_query(table, rows):
            best = sorted(own, key=lambda row: (-values[row], table.entries[table.entry[row]].encode()))
            for place, row in enumerate(best, 1):
                expected[row] = place
        assert same_bits(ranks(table, values, rows), expected)

    def test_ids_tie_by_their_bytes(self):
        """UTF-8: Z 5A, a 61, e with acute accent C3 A9, an emoji F0: the order of code points."""
        ids = ["\U0001f600", "é", "a", "Z"]
        lists = {"fts": [ScoredId(id_, 1.0, at) for at, id_ in enumerate(ids, 1)]}
        table = joined(lists)
        place = ranks(table, table.columns["fts"], table.exists)
        assert [table.entries[table.entry[row]] for row in np.argsort(place)] == ["Z", "a", "é", "\U0001f600"]


@given(seeds)
def test_sums_maxima_and_counts_are_those_of_each_query(seed):
    table, values, rows = chosen(seed)
    own = by_query(table, rows)
    assert count_rows(table, rows).tolist() == [len(r) for r in own]
    assert per_query(table, rows, np.maximum, values, -7.0).tolist() == [
        max((values[row] for row in r), default=-7.0) for r in own
    ]
    assert per_query(table, rows, np.add, values, 0.0) == pytest.approx([sum(values[r]) for r in own])


class TestDepth:
    def test_a_depth_keeps_the_first_places_of_a_list(self):
        table = listed(fts="a b c", vector="c d").at_depth({"fts": 2, "vector": None})
        assert np.isnan(table.columns["fts"]).tolist() == [False, False, True, True]
        assert np.isnan(table.columns["vector"]).tolist() == [True, True, False, False]

    def test_layers_make_no_candidates(self):
        """They cover every entry in scope, so strategies that name no layer do not count them."""
        assert listed(fts="a", l2="a b").exists.tolist() == [True, False]

    def test_positions_are_cut_not_ranks(self):
        """A late filter left places 2 and 5: depth 4 keeps one of them, though both are among four."""
        lists = {"vector": [ScoredId("a", 0.9, 2), ScoredId("b", 0.8, 5)]}
        table = joined(lists)
        assert table.at_depth({"vector": 4}).exists.tolist() == [True, False]

    @given(seeds, st.integers(1, 12), st.integers(1, 12))
    def test_the_smaller_of_two_depths_counts(self, seed, first, second):
        table, _, _ = chosen(seed)
        twice = table.at_depth({"fts": first}).at_depth({"fts": second})
        for name, values in table.at_depth({"fts": min(first, second)}).columns.items():
            assert same_bits(twice.columns[name], values)

    def test_only_a_depth_beyond_the_recorded_one_is_refused(self):
        table = replace(listed(fts="a b"), fingerprint={"max_depth": {"fts": 20}})
        assert len(table.at_depth({"fts": 20})) == 2
        with pytest.raises(ConfigError, match=r"21 of 'fts'"):
            table.at_depth({"fts": 21})
        with pytest.raises(ConfigError, match="0 of 'fts'"):
            table.at_depth({"fts": 0})


class TestJoin:
    def test_a_list_without_results_is_a_column_all_the_same(self):
        assert np.isnan(listed(fts="a", vector="").columns["vector"]).all()

    @pytest.mark.parametrize("names", [("fts",), ("fts", "vector"), ("fts", "vector", "graph")])
    def test_rows_stand_in_the_order_of_ids_however_lists_rank_them(self, names):
        """Lists that agree are those for which the order of ids could be forgotten; ties are by id."""
        lists = {name: [ScoredId("b", 2.0, 1), ScoredId("c", 1.0, 2), ScoredId("a", 0.5, 3)] for name in names}
        table = joined(lists)
        assert table.entries == ("a", "b", "c")
        assert [table.entries[entry] for entry in table.entry] == ["a", "b", "c"]
        assert all(table.positions[name].tolist() == [3, 1, 2] for name in names)

    def test_a_directory_that_a_query_did_not_find_is_no_row(self):
        found = [{"fts": [ScoredId(id_, 1.0, 1) for id_ in ids]} for ids in ("ab", "b")]
        table = join([Query("t")] * 2, [0.0] * 2, found, {}, lambda *_: [Entry("a"), Entry("b")])
        assert replace(table, directory=np.zeros(2, np.int64)).parent.tolist() == [0, 0, -1]

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
    def test_a_score_that_is_not_finite_is_refused(self, score):
        for found, scored in ((score, 1.0), (1.0, score)):
            with pytest.raises(ConfigError, match="returned a score"):
                joined({"fts": [ScoredId("a", found, 1)]}, {"tfidf": lambda q, ids, own=scored: [own]})

    @pytest.mark.parametrize("scores", [[1.0], [1.0] * 3, [[1.0, 2.0]], 1.0])
    def test_scores_that_are_not_one_a_candidate_are_refused(self, scores):
        with pytest.raises(ConfigError, match=r"^tfidf returned \d scores"):
            joined({"fts": [ScoredId("a", 2.0, 1), ScoredId("b", 1.0, 2)]}, {"tfidf": lambda q, ids: scores})

    def test_tags_are_sets_with_shared_codes(self):
        assert NO_FACTS.tags.offsets.tolist() == TagSets.of([], {}).offsets.tolist() == [0]
        codes = {}
        sets = TagSets.of([("b", "a", "b"), (), ("c", "a")], codes)
        assert sets.offsets.tolist() == [0, 2, 2, 4]
        assert sets.codes.tolist() == [0, 1, 1, 2]
        assert codes == {"b": 0, "a": 1, "c": 2}
