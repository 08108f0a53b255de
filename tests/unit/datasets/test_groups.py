"""Queries that vary together have one unit everywhere: in statistics, in folds, and in what is held out."""

from steelyard.memory.query import Query
from steelyard_eval.datasets.groups import unit_numbers, unit_of, units

NAMED_ALIKE = [Query("a", id="q1"), Query("b", id="q2", group="q1"), Query("c", id="q3", group="query q1")]


def test_a_group_called_like_a_query_is_not_that_query():
    assert unit_numbers(NAMED_ALIKE).tolist() == [0, 1, 2]
    assert len(set(units(NAMED_ALIKE))) == 3


def test_queries_of_one_group_have_one_number_and_others_stand_alone():
    queries = [
        Query("a", id="a", group="g"),
        Query("b", id="b"),
        Query("c", id="c", group="g"),
        Query("d", id="d"),
    ]

    assert unit_numbers(queries).tolist() == [0, 1, 0, 2]
    assert [unit_of(query) for query in queries[:2]] == [("group", "g"), ("query", "b")]


def test_without_groups_every_query_is_resampled_alone():
    assert units([Query("a", id="a"), Query("b", id="b")]) is None
