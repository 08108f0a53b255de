"""Weights that follow feedback: Soleri's documented rule, and the one of its code."""

from dataclasses import replace

import pytest

from steelyard.base.errors import ConfigError
from steelyard.extensions.adaptive import AdaptiveRule, Feedback, adapt
from steelyard.fusion import parse_strategy
from steelyard.systems.soleri import DOCUMENTED, FACTORS, SHIPPED

PRIORS = ("severity", "recency", "tags", "domain")


def weights(strategy):
    return {term.expr.name: term.weight for term in strategy.terms}


def adapted(system, feedback):
    """Weights with and without vectors."""
    config = adapt(system.config(), feedback, AdaptiveRule(**system.adaptive))
    return weights(config.strategy), weights(config.keywords_only)


@pytest.mark.parametrize(
    ("feedback", "tfidf", "others"),
    [
        # rate 0: 0.40 - 0.15; the other four share 1 - 0.25 equally, as they did before.
        (Feedback(0, 40), 0.25, 0.1875),
        # rate 0.5: nothing moves.
        (Feedback(20, 20), 0.40, 0.15),
        # rate 2/3: delta = 1/6 * 0.30 = 0.05; (1 - 0.45) / 4.
        (Feedback(20, 10), 0.45, 0.1375),
        # rate 1: 0.40 + 0.15; (1 - 0.55) / 4.
        (Feedback(40, 0), 0.55, 0.1125),
        # A modified result is half an accepted one: (10 + 5) / 30 = 0.5.
        (Feedback(10, 10, modified=10), 0.40, 0.15),
        # rate (15 + 7.5) / 30 = 0.75: delta = 0.075; (1 - 0.475) / 4.
        (Feedback(15, 0, modified=15), 0.475, 0.13125),
    ],
)
@pytest.mark.parametrize("system", [DOCUMENTED, SHIPPED])
def test_without_vectors_the_semantic_weight_follows_the_rate(system, feedback, tfidf, others):
    _, alone = adapted(system, feedback)
    assert alone == pytest.approx({"tfidf": tfidf} | dict.fromkeys(PRIORS, others), abs=1e-12)


@pytest.mark.parametrize(
    ("feedback", "tfidf", "others"),
    [
        # rate 0: 0.25 - 0.15; the other five share 1 - 0.10.
        (Feedback(0, 40), 0.10, 0.18),
        # rate 2/3: 0.25 + 0.05; 0.70 / 5.
        (Feedback(20, 10), 0.30, 0.14),
        # rate 1: 0.25 + 0.15; 0.60 / 5.
        (Feedback(40, 0), 0.40, 0.12),
    ],
)
def test_documented_moves_every_other_weight_of_the_hybrid_set(feedback, tfidf, others):
    hybrid, _ = adapted(DOCUMENTED, feedback)
    assert hybrid == pytest.approx({"tfidf": tfidf} | dict.fromkeys((*PRIORS, "cosine"), others), abs=1e-12)


@pytest.mark.parametrize(
    ("feedback", "tfidf", "others"),
    [
        # rate 0: 0.10 is below the floor of 0.25; 0.60 is left for four.
        (Feedback(0, 40), 0.25, 0.15),
        # rate 2/3: (1 - 0.15 - 0.30) / 4.
        (Feedback(20, 10), 0.30, 0.1375),
        # rate 1: (1 - 0.15 - 0.40) / 4.
        (Feedback(40, 0), 0.40, 0.1125),
    ],
)
def test_shipped_holds_the_vector_weight_and_never_falls_below_a_quarter(feedback, tfidf, others):
    hybrid, _ = adapted(SHIPPED, feedback)
    expected = {"tfidf": tfidf, "cosine": 0.15} | dict.fromkeys(PRIORS, others)
    assert hybrid == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("system", [DOCUMENTED, SHIPPED])
@pytest.mark.parametrize("accepted", (0, 25, 35, 50))
def test_the_weights_sum_to_1_at_every_rate(system, accepted):
    for found in adapted(system, Feedback(accepted, 50 - accepted)):
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)


def test_failed_entries_are_not_counted():
    config = DOCUMENTED.config()
    assert adapt(config, Feedback(29, 0, failed=10), AdaptiveRule()) == config
    # Nor do they lower the rate: 30 of 30, not 30 of 60.
    moved = adapt(config, Feedback(30, 0, failed=30), AdaptiveRule())
    assert weights(moved.keywords_only)["tfidf"] == pytest.approx(0.55)


def test_a_weight_stops_where_the_others_are_used_up():
    config = replace(DOCUMENTED.config(), strategy=parse_strategy("weighted_sum(0.9*tfidf, 0.1*fts)"))
    moved = adapt(config, Feedback(40, 0), AdaptiveRule())
    assert weights(moved.strategy) == pytest.approx({"tfidf": 1.0, "fts": 0.0})


@pytest.mark.parametrize(
    "strategy",
    [
        "rrf(tfidf, fts)",
        "weighted_sum(0.5*fts, 0.5*vector)",
        "weighted_sum(1*tfidf)",
        "weighted_sum(0.85*tfidf, 0.15*cosine)",  # only a weight that is held stands beside it
        "weighted_sum(0.4*tfidf, 0.4*fts)",
        "weighted_sum(0.6*tfidf, 0.3*tfidf, 0.4*fts)",
    ],
)
def test_a_strategy_the_rule_does_not_fit_is_refused_however_little_feedback_there_is(strategy):
    config = replace(DOCUMENTED.config(), strategy=parse_strategy(strategy))
    with pytest.raises(ConfigError, match=r"write a weighted_sum"):
        adapt(config, Feedback(1, 0), AdaptiveRule(held=("cosine",)))


def test_the_weights_under_the_names_of_the_document_are_those_of_its_table():
    """seeds/soleri.txt, six scoring signals: weight (hybrid), weight (FTS only)."""
    table = {
        "semantic": (0.25, 0.40),
        "vector": (0.15, 0.00),
        "severity": (0.15, 0.15),
        "temporalDecay": (0.15, 0.15),
        "tagOverlap": (0.15, 0.15),
        "domainMatch": (0.15, 0.15),
    }
    hybrid, keywords = weights(DOCUMENTED.searching.strategy), weights(DOCUMENTED.searching.keywords_only)
    assert {name: (hybrid[ours], keywords.get(ours, 0.0)) for name, ours in FACTORS.items()} == table
    assert len(hybrid) == 6
