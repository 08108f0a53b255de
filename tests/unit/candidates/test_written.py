"""What is chosen has no signals whose facts the data lacks, and returns as many hits as were asked for."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.settings import simplify_config
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace, judged


@pytest.fixture(scope="module")
def space():
    """Notes that all have one severity and no domain; no query is of a domain."""
    data = load(starter())
    entries = tuple(replace(e, severity="warning", domain="", kind="") for e in data.entries)
    return Workspace.open(replace(data, entries=entries), "lsa")


def test_an_idle_signal_stays_where_a_metric_moves_without_it(space):
    """The constant is read by who measures here, as the place of Soleri's memories at a fixed 0.5 would be."""
    usual = find_system("soleri").config(10, space.model)
    table = record(space, judged(space.dataset, space.dataset.queries), [usual])
    config = find_system("soleri").config(10).with_strategy(usual.strategy)

    left = simplify_config(table, config, lambda one: np.array([float("severity" in one.strategy.signals)]))
    assert "severity" in left.strategy.signals
    assert "domain" not in left.strategy.signals


def test_a_search_by_what_was_chosen_returns_the_limit(space):
    """Soleri's document shows all of a small vault where keywords find fewer than 50, which its program does."""
    query = space.dataset.queries[0]
    found = recommend(space.dataset, only="soleri", workspace=space, timed=False)
    asked = [find_system("soleri").config(10), found.attempt or found.config]

    chosen = set(parse_strategy(found.result.choice.strategy).signals)
    assert {"severity", "domain"}.isdisjoint(chosen)  # all notes are equal in both
    assert {"tfidf", "cosine"} <= chosen
    documented, chosen = (len(space.searcher(config).search(query).hits) for config in asked)
    assert documented > 10
    assert chosen == 10
