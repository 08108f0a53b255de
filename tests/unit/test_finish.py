"""From scores to lists: the tie rule, the cut, and stages as they are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import ConfigError
from steelyard.finish import Cut, finish, order, parse_stages
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


@given(st.integers(0, 2**32 - 1))
def test_rows_are_ordered_by_score_then_id(seed):
    table, scores = ranked(seed)
    assert lists(table, order(table, scores)) == plainly(table, scores)


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_a_cut_keeps_the_first_places_of_every_list(seed, limit):
    table, scores = ranked(seed)
    ranking = finish(table, scores, [Cut(limit)])
    assert lists(table, ranking) == [own[:limit] for own in plainly(table, scores)]


def test_stages_act_one_after_the_other():
    table, scores = ranked(0)
    assert lists(table, finish(table, scores, [Cut(3), Cut(2)])) == [own[:2] for own in plainly(table, scores)]
    assert lists(table, finish(table, scores, [])) == plainly(table, scores)


def test_nothing_ranked_is_an_empty_list_for_every_query():
    table, _ = ranked(0)
    ranking = finish(table, np.full(len(table), np.nan), [Cut(5)])
    assert ranking.offsets.tolist() == [0] * (len(table.queries) + 1)


def test_stages_are_read_as_they_are_printed():
    assert parse_stages(["cut(10)", "cut(3)"]) == (Cut(10), Cut(3))
    assert [str(stage) for stage in parse_stages(["cut( 10.0 )"])] == ["cut(10)"]


@pytest.mark.parametrize(
    "text",
    [
        "cut",
        "cut()",
        "cut(0)",
        "cut(-1)",
        "cut(2.5)",
        "cut(1, 2)",
        "cut(fts)",
        "cut(fts, 3)",
        "2*cut(3)",
        "cut(3, x=1)",
    ],
)
def test_a_cut_takes_one_whole_number(text):
    with pytest.raises(ConfigError, match="needs one whole number of at least 1, as in cut"):
        parse_stages([text])


def test_every_stage_that_cannot_be_read_is_named():
    with pytest.raises(ConfigError) as raised:
        parse_stages(["cutt(3)", "cut(10)", "cut((", "cut(0)"])

    message = str(raised.value)
    assert "finish stage 'cutt(3)': unknown stage 'cutt'; did you mean 'cut'?" in message
    assert "finish stage 'cut((': expression 'cut((': expected a name at position 4" in message
    assert "finish stage 'cut(0)': it needs one whole number" in message
