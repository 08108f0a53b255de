"""Numbers in as few digits as rank alike."""

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.common.console import brief as shown
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.weight_rounding import brief, rounded


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


def ranked(table, config):
    found = replay(table, config)
    return np.concatenate((found.ranking.offsets, found.entry))


def test_long_weights_become_short_ones_that_rank_alike(space):
    config = find_system("plain").config(10, space.model)
    long = config.with_strategy(
        parse_strategy("weighted_sum(0.3000000001*bm25, 0.6999999999*vector, normalize=max)")
    )
    table = record(space, space.dataset.queries, [long])

    short = brief(table, long)

    assert str(short.strategy) == "weighted_sum(0.3*bm25, 0.7*vector, normalize=max)"
    assert np.array_equal(ranked(table, short), ranked(table, long))


def test_digits_that_a_ranking_needs_stay(space):
    config = find_system("plain").config(10, space.model)
    long = config.with_strategy(
        parse_strategy("weighted_sum(0.123456789*bm25, 0.876543211*vector, normalize=max)")
    )
    table = record(space, space.dataset.queries, [long])

    short = brief(table, long)

    assert np.array_equal(ranked(table, short), ranked(table, long))
    fewer = long.with_strategy(parse_strategy("weighted_sum(0.1*bm25, 0.9*vector, normalize=max)"))
    assert not np.array_equal(ranked(table, fewer), ranked(table, long))  # so one digit is not enough


def test_short_numbers_and_whole_ones_are_left_alone():
    text = "weighted_sum(0.3*rrf(fts, 1.5*bm25, k=61.25), 0.1234*recency(half_life=365d), normalize=max)"
    assert rounded(text, 2) == text
    assert rounded("rrf(0.33333*fts, 123456*bm25)", 2) == "rrf(0.33*fts, 123456*bm25)"


def test_a_half_life_in_four_digits_ranks_alike(space):
    """What reports print of MoltNet's 0.99 an hour."""
    config = find_system("moltnet").config(10, space.model)
    weighted = str(config.strategy).replace("0*recency", "0.3*recency")
    table = record(space, space.dataset.queries, [config])

    lists = [ranked(table, config.with_strategy(parse_strategy(text))) for text in (weighted, shown(weighted))]

    assert "68.97h" in shown(weighted)
    assert np.array_equal(*lists)
