"""Weights in as few digits as their metrics need, and half-lives as they are shown."""

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.settings import round_weights
from steelyard_eval.common.console import brief as shown
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


def ranked(table, config):
    found = replay(table, config)
    return np.concatenate((found.ranking.offsets, found.entry))


@pytest.mark.parametrize(
    ("moves", "written"),
    [
        ("nothing", "weighted_sum(0.12*bm25, 0.88*vector, normalize=max)"),
        ("the third digit", "weighted_sum(0.123*bm25, 0.877*vector, normalize=max)"),
    ],
)
def test_weights_have_two_digits_or_as_many_as_metrics_need(moves, written):
    long = find_system("plain").config(10)
    long = long.with_strategy(parse_strategy("weighted_sum(0.123456789*bm25, 0.876543211*vector, normalize=max)"))

    def means(config):
        return np.array([0.5 if moves == "nothing" else config.strategy.weights[0]])

    assert str(round_weights(long, means).strategy) == written


def test_a_half_life_in_four_digits_ranks_alike(space):
    """What reports print of MoltNet's 0.99 an hour."""
    config = find_system("moltnet").config(10, space.model)
    weighted = str(config.strategy).replace("0*recency", "0.3*recency")
    table = record(space, space.dataset.queries, [config])

    lists = [ranked(table, config.with_strategy(parse_strategy(text))) for text in (weighted, shown(weighted))]

    assert "68.97h" in shown(weighted)
    assert np.array_equal(*lists)
