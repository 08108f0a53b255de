"""What is written of a choice: few digits, no signal whose facts the data lacks, the limit asked for."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.settings import round_weights, simplify_config
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.common.console import brief as shown
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
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


@pytest.fixture(scope="module")
def told_space():
    """Notes that all have one severity and no domain; no query is of a domain."""
    data = load(starter())
    entries = tuple(replace(e, severity="warning", domain="", kind="") for e in data.entries)
    return Workspace.open(replace(data, entries=entries), "lsa")


def test_an_idle_signal_stays_where_a_metric_moves_without_it(told_space):
    """The constant is read by who measures here, as the place of Soleri's memories at a fixed 0.5 would be."""
    usual = find_system("soleri").config(10, told_space.model)
    table = record(told_space, judged(told_space.dataset, told_space.dataset.queries), [usual])
    config = find_system("soleri").config(10).with_strategy(usual.strategy)
    left = simplify_config(table, config, lambda one: np.array([float("severity" in one.strategy.signals)]))
    assert "severity" in left.strategy.signals
    assert "domain" not in left.strategy.signals


def test_a_search_by_what_was_chosen_returns_the_limit(told_space):
    """Soleri's document shows all of a small vault where keywords find fewer than 50, which its program does."""
    query = told_space.dataset.queries[0]
    found = recommend(told_space.dataset, only="soleri", workspace=told_space, timed=False)
    asked = [find_system("soleri").config(10), found.attempt or found.config]
    chosen = set(parse_strategy(found.result.choice.strategy).signals)
    assert {"severity", "domain"}.isdisjoint(chosen)  # all notes are equal in both
    assert {"tfidf", "cosine"} <= chosen
    documented, chosen = (len(told_space.searcher(config).search(query).hits) for config in asked)
    assert documented > 10
    assert chosen == 10
