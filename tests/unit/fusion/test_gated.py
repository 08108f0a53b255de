"""mem0's score, beside a script of its own that follows mem0's scoring.py line by line."""

from math import exp

import numpy as np
import pytest

from steelyard.fusion import compile_plan, fuse, parse_strategy
from steelyard.memory.query import Query
from steelyard.stores.base import Found
from steelyard.table.join import join
from steelyard.testing.fusions import recomputed

FORMULA = parse_strategy("gated(vector, bm25, least=0.1)")


def table_of(cosines, scores, terms):
    """The table of one query: {id: cosine}, {id: bm25}, and how many terms the query has."""
    lists = {
        name: [Found(i, v, at) for at, (i, v) in enumerate(sorted(own.items(), key=lambda s: -s[1]), 1)]
        for name, own in (("vector", cosines), ("bm25", scores))
    }
    count = {"terms": lambda query, ids: np.full(len(ids), float(terms))}
    return join([Query("q", id="q")], [0.0], [lists], count, None)


def ours(cosines, scores, terms, strategy=FORMULA):
    table = table_of(cosines, scores, terms)
    return {table.entries[e]: s for e, s in zip(table.entry, fuse(table, strategy), strict=True) if s == s}


def theirs(cosines, scores, terms, threshold=0.1):
    """mem0 8d5b786, mem0/utils/scoring.py, without the entity boost."""
    if terms <= 3:
        midpoint, steepness = 5.0, 0.7
    elif terms <= 6:
        midpoint, steepness = 7.0, 0.6
    elif terms <= 9:
        midpoint, steepness = 9.0, 0.5
    elif terms <= 15:
        midpoint, steepness = 10.0, 0.5
    else:
        midpoint, steepness = 12.0, 0.5
    words = {id_: 1.0 / (1.0 + exp(-steepness * (raw - midpoint))) for id_, raw in scores.items()}
    most = 1.0 + bool(words)
    return {i: min((c + words.get(i, 0.0)) / most, 1.0) for i, c in cosines.items() if c >= threshold}


def random_input(rng):
    ids = [f"m{at}" for at in range(12)]
    near = rng.choice(ids, size=rng.integers(0, 9), replace=False)
    worded = rng.choice(ids, size=rng.integers(0, 9), replace=False)
    cosines = {i: float(np.round(rng.uniform(-0.3, 1.0), 2)) for i in near}
    return cosines, {i: float(rng.uniform(0.1, 30)) for i in worded}, int(rng.integers(0, 20))


def test_a_thousand_random_inputs_score_as_in_mem0():
    rng = np.random.default_rng(37)
    for _ in range(1000):
        cosines, scores, terms = random_input(rng)
        assert ours(cosines, scores, terms) == pytest.approx(theirs(cosines, scores, terms), abs=1e-12)


def test_by_hand():
    # 4 terms: midpoint 7, steepness 0.6. sigmoid(7) = 0.5; no keywords: 0. Both lists found something: halves.
    found = ours({"a": 0.6, "b": 0.8, "far": 0.09}, {"a": 7.0, "far": 30.0, "words": 30.0}, 4)
    assert found == {"a": pytest.approx(0.55), "b": pytest.approx(0.4)}


def test_weights_of_silent_lists_are_not_in_the_divisor():
    strategy = parse_strategy("gated(vector, 0.5*bm25, least=0)")
    # (0.6 + 0.5 * 0.5) / (1 + 0.5), and 0.6 / 1
    assert ours({"a": 0.6}, {"a": 5.0}, 2, strategy) == {"a": pytest.approx(0.85 / 1.5)}
    assert ours({"a": 0.6}, {}, 2, strategy) == {"a": 0.6}


def test_the_explanation_adds_up_and_names_the_sigmoid():
    table = table_of({"a": 0.6}, {"a": 7.0}, 4)
    found = compile_plan(table, FORMULA).explain(0)
    assert recomputed(found) == fuse(table, FORMULA)[0]
    for part in ("midpoint", "steepness", "terms", "of at least 0.1"):
        assert part in str(found)


def test_without_its_gate_nothing_is_left_and_without_keywords_similarity_alone():
    assert FORMULA.without({"vector"}) is None
    assert str(FORMULA.without({"bm25"})) == "gated(vector, least=0.1)"


def test_a_list_of_huge_negative_scores_breaks_nothing():
    assert ours({"a": 0.6}, {"a": -1e90}, 4) == {"a": pytest.approx(0.3)}
