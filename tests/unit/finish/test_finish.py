"""From scores to lists: the tie rule, the cut, and stages as they are written."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shared import tabled

from steelyard.base.errors import ConfigError
from steelyard.finish import Cut, Drop, Merge, finish, order, parse_stages
from steelyard.memory.query import Query
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard.testing import random_table


def ranked(seed):
    """A random table with scores that often tie, and some rows without one."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, columns=("fts",))
    scores = rng.choice([np.nan, 0.0, -0.0, -1.5, 0.1, 0.3], size=len(table))
    return table, scores


def lists(table, ranking):
    """[[(id, score), ...] of each query]."""
    pairs = [
        (table.entries[table.entry[row]], score) for row, score in zip(ranking.row, ranking.score, strict=True)
    ]
    return [pairs[begin:end] for begin, end in zip(ranking.offsets[:-1], ranking.offsets[1:], strict=True)]


def plainly(table, scores):
    """The same by Python's own sort."""
    found = [[] for _ in table.queries]
    for row, score in enumerate(scores):
        if not np.isnan(score):
            found[table.query[row]].append((table.entries[table.entry[row]], score))
    return [sorted(own, key=lambda pair: (-pair[1], pair[0].encode())) for own in found]


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_rows_are_ordered_by_score_then_id_and_a_cut_keeps_the_first_places_of_every_list(seed, limit):
    table, scores = ranked(seed)
    assert lists(table, order(table, scores)) == plainly(table, scores)
    ranking = finish(table, scores, [Cut(limit + 1), Cut(limit)])
    assert lists(table, ranking) == [own[:limit] for own in plainly(table, scores)]
    assert not finish(table, np.full(len(table), np.nan), [Cut(5)]).offsets.any()


# Merging what was searched aside


def listed(*queries, **scorers):
    """The table of queries given as {retriever: {id: score}}, best first; scorers as {id: value}."""
    lists = [
        {name: [ScoredId(*hit, place) for place, hit in enumerate(own.items(), 1)] for name, own in query.items()}
        for query in queries
    ]
    score = {name: lambda _, ids, own=own: np.array([own[i] for i in ids]) for name, own in scorers.items()}
    return join([Query("q", id=f"q{at}") for at in range(len(lists))], [0.0] * len(lists), lists, score, None)


def finished(table, *stages):
    """Its lists by the scores of fts after these stages."""
    return lists(table, finish(table, table.column("fts"), parse_stages(stages)))


@tabled
def test_merged_entries_get_the_score_and_stand_behind_others_of_that_score(queries, stages, expected):
    assert finished(listed(*queries), *stages) == [[*own.items()] for own in expected]


# Dropping


def test_dropping_leaves_out_rows_of_value_0_and_does_not_fill_up():
    signal = {"a": 0.0, "b": 0.1, "c": -0.0, "d": -0.1}
    table = listed({"fts": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}}, lexical=signal)
    assert finished(table, "cut(2)", "drop(lexical)") == [[("b", 2.0)]]
    assert finished(table, "drop(lexical)") == [[("b", 2.0), ("d", 0.5)]]


# The guard of small lists


def found(count, retriever="fts"):
    return {retriever: {f"{retriever}{i:03}": float(-i) for i in range(count)}}


def sizes(queries, stage):
    """How long each list is after the stage, where everything found is ranked by its own score."""
    table = listed(*queries)
    columns = np.array([column for name, column in table.columns.items() if name != "memory"])
    return np.diff(finish(table, np.fmax.reduce(columns), [stage]).offsets).tolist()


@tabled
def test_a_small_list_is_kept_whole_if_the_cut_drops_more_than_half(size, limit, left):
    assert sizes([found(size)], Cut(limit, all_below=50)) == [left]
    assert sizes([found(size), found(60), {}, found(size)], Cut(limit, all_below=50)) == [left, limit, 0, left]


def test_the_guard_counts_the_candidates_of_one_retriever_and_keeps_them_all():
    many = found(40) | found(30, "vector")
    assert sizes([many], Cut(10, all_below=50, counting="fts")) == [70]
    assert sizes([many], Cut(10, all_below=50)) == [10]
    few = found(60) | found(3, "vector")
    assert sizes([few], Cut(10, all_below=50, counting="vector")) == [63]
    assert sizes([few], Cut(10, all_below=50, counting="fts")) == [10]


@tabled
def test_every_stage_is_read_as_it_is_printed_and_says_what_it_reads(text, kind, fields, read):
    stage = {"Cut": Cut, "Drop": Drop, "Merge": Merge}[kind](**fields)
    assert parse_stages([text]) == (stage,)
    assert (str(stage), stage.signals) == (text, set(read))


@tabled
def test_what_a_stage_does_not_take_is_refused_with_the_rule(text, told):
    with pytest.raises(ConfigError, match=told):
        parse_stages([text])


def test_every_stage_that_cannot_be_read_is_named():
    with pytest.raises(ConfigError) as raised:
        parse_stages(["cutt(3)", "cut(10)", "cut((", "cut(0)"])
    named = [f"finish stage '{text}':" in str(raised.value) for text in ("cutt(3)", "cut((", "cut(0)", "cut(10)")]
    assert named == [True, True, True, False]
