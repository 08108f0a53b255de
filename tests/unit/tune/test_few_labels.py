"""What is said without labels, and with few."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.decide.decision import decide
from steelyard_eval.decide.few_labels import Few, leader, less_one_error, reconsidered
from steelyard_eval.decide.public import DEFAULT, PublicGains, as_good, public_table
from steelyard_eval.decide.rule import ALL_FAMILIES, Evidence
from steelyard_eval.decide.without_labels import Advice, advise


def config_of(text, system="plain"):
    made = find_system(system).config(10, "minilm")
    return made.with_strategy(parse_strategy(text)) if text else made


# The table


@pytest.mark.parametrize(
    ("system", "text", "better", "mean", "worst"),
    [
        # The table of the experiment that this rests on: means over two groups of five, the worst of ten.
        ("bm25", "", 10, (0.066 + 0.081) / 2, 0.009),
        ("vector", "", 8, (0.081 + 0.054) / 2, -0.053),
        ("plain", "rrf(bm25, vector, k=60)", 10, (0.012 + 0.035) / 2, 0.003),
        ("echovault", "", 9, (0.095 + 0.074) / 2, -0.012),
        ("moltnet", "", 9, (0.071 + 0.034) / 2, -0.048),
        ("spec_kit", "", 10, (0.039 + 0.113) / 2, 0.001),
    ],
)
def test_the_table_has_what_an_independent_run_found(system, text, better, mean, worst):
    found = public_table().against(config_of(text, system), "minilm").to_json()

    assert (found["collections"], found["better"]) == (10, better)
    assert found["mean"] == pytest.approx(mean, abs=0.004)
    assert found["worst"] == pytest.approx(worst, abs=0.004)


def test_a_public_collection_says_nothing_about_itself():
    own = public_table().about["collections"][0]["sha256"]

    assert len(public_table().against(config_of("", "bm25"), "minilm", own).gains) == 9


def test_a_sum_that_was_not_run_is_compared_with_the_next_tenth_and_says_so():
    found = public_table().against(config_of("weighted_sum(0.22*bm25, 0.78*vector, normalize=minmax)"), "minilm")

    assert found.near == "weighted_sum(0.2*bm25, 0.8*vector, normalize=minmax)"
    assert "the nearest to your x that was run there" in found.sentence("your x")


@pytest.mark.parametrize(
    "text", ["rrf(bm25, vector, k=33)", "weighted_sum(0.2*fts, 0.8*vector, normalize=minmax)"]
)
def test_nothing_is_known_of_what_was_not_run(text):
    assert public_table().against(config_of(text), "minilm") is None


# What is said


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (DEFAULT, True),
        ("weighted_sum(0.6*vector, 0.4*bm25, normalize=max)", True),
        ("weighted_sum(2*bm25, 2*vector, normalize=minmax)", True),
        ("weighted_sum(0.39*bm25, 0.61*vector, normalize=minmax)", False),
        ("weighted_sum(0.5*bm25, 0.5*vector)", False),  # unscaled, bm25 decides
        ("weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)", False),
    ],
)
def test_what_is_as_good_a_guess_as_the_default(text, good):
    assert as_good(config_of(text)) is good


def test_without_labels_the_default_is_worth_trying_and_no_gain_is_stated_for_these_notes():
    found = advise("bm25", config_of("", "bm25"), 10, "minilm")

    assert found.verdict == "try"
    assert str(found.attempt.strategy) == DEFAULT
    assert "Nothing was measured on your notes. On ten public collections this was better than your bm25" in (
        found.sentence
    )


@pytest.mark.parametrize(
    ("label", "config", "model", "why"),
    [
        ("half", config_of(DEFAULT), "minilm", "No method without labels tells"),
        ("mine.run", None, "minilm", "was not run on the public collections"),
        ("odd", config_of("rrf(bm25, vector, k=33)"), "minilm", "was not run on the public collections"),
        ("bm25", config_of("", "bm25"), "", "There are no vectors"),
    ],
)
def test_where_nothing_is_known_the_current_one_is_kept(label, config, model, why):
    found = advise(label, config, 10, model)

    assert (found.verdict, found.attempt) == ("keep", None)
    assert why in found.sentence
    assert "better than" not in found.sentence


def test_another_embedder_than_was_measured_is_named():
    assert (
        "measured with MiniLM, not with your embedder" in advise("bm25", config_of("", "bm25"), 10, "e5").sentence
    )


def test_a_default_that_was_worse_elsewhere_is_not_tried(monkeypatch):
    losing = replace(public_table(), means={"minilm": {DEFAULT: np.full(10, 0.4), "bm25": np.full(10, 0.5)}})
    monkeypatch.setattr("steelyard_eval.decide.without_labels.public_table", lambda: losing)

    assert advise("bm25", config_of("", "bm25"), 10, "minilm").verdict == "keep"


def test_what_was_shown_counts_collections_and_names_the_worst():
    assert not PublicGains(np.array([0.3, -0.1, -0.1, 0.0])).likely  # better on one of four
    assert not PublicGains(np.array([0.1, 0.1, -0.4])).likely  # on two of three, and worse on average
    assert PublicGains(np.array([0.1, 0.1, -0.1])).to_json()["worst"] == pytest.approx(-0.1)


# The rules of few labels


def test_the_lower_end_is_the_mean_less_a_standard_error_pooled_with_what_is_known():
    rows = np.array([[0.1, 0.3]])
    # mean .2; variance .02, error sqrt(.02 / 2) = .1
    assert less_one_error(rows, np.arange(2)) == pytest.approx([0.1])
    # variance (2 * .02 + 10 * .08) / 12 = .07, error sqrt(.07 / 2)
    assert less_one_error(rows, np.arange(2), np.array([0.08])) == pytest.approx([0.2 - np.sqrt(0.035)])


def evidence(current, default, third, n):
    """Of three candidates' gains on n queries, a little apart."""
    wave = 0.01 * np.cos(np.arange(n))
    rows = np.array([[current], [default], [third]]) + np.array([wave * 0, wave, -wave])
    return Evidence.of(rows.astype(np.float32), rows.astype(np.float32))


FEW = Few(np.array([1, 2]), np.zeros(2), 1)
TRY = Advice("try", "", attempt=object())


def test_the_leader_is_the_default_until_another_one_is_ahead_by_an_error():
    assert leader(evidence(0, 0.1, 0.1, 20), FEW) == 1
    assert leader(evidence(0, 0.1, 0.2, 20), FEW) == 2


@pytest.mark.parametrize(
    ("n", "third", "advice", "verdict", "candidate", "public"),
    [
        (5, -0.2, TRY, "try", 1, True),  # few labels: the default
        (19, -0.2, Advice("keep", ""), "keep", None, True),  # nothing better is known elsewhere
        (20, -0.2, TRY, "keep", None, False),  # the labels speak: the leader, which is behind
        (20, 0.004, TRY, "try", 2, False),  # ahead by a standard error
    ],
)
def test_a_keep_is_reconsidered(n, third, advice, verdict, candidate, public):
    own = evidence(0, -0.1, third, n)
    kept = replace(decide(own, ALL_FAMILIES), verdict="keep", candidate=None)

    found, rests = reconsidered(kept, own, ALL_FAMILIES, FEW, advice, n)

    assert (found.verdict, found.candidate, rests) == (verdict, candidate, public)


@pytest.mark.parametrize(("n", "verdict"), [(14, "try"), (15, "ship"), (20, "ship")])
def test_below_fifteen_labels_nothing_ships(n, verdict):
    own = evidence(0, 0.2, 0.3, n)
    shipped = replace(decide(own, ALL_FAMILIES), verdict="ship", candidate=2)

    found, _ = reconsidered(shipped, own, ALL_FAMILIES, FEW, TRY, n)
    assert (found.verdict, found.candidate) == (verdict, 2)
    assert (found.refusal is None) is (verdict == "ship")


def test_of_few_labels_a_try_stands_where_it_is_ahead_of_the_default():
    for third, candidate in ((0.201, 1), (0.3, 2)):
        own = evidence(0, 0.2, third, 10)
        named = replace(decide(own, ALL_FAMILIES), verdict="try", candidate=2)
        assert reconsidered(named, own, ALL_FAMILIES, FEW, TRY, 10)[0].candidate == candidate
