"""Estimates whose values are known: by hand on tiny logs, by construction on simulated ones."""

import numpy as np
import pytest
from made_world import LEANING, cells_of, counted, decided, learned, made, tried, truth
from scipy.stats import binomtest
from simulator import simulate

from steelyard.feedback import Explore, draft_teams
from steelyard_eval.learn import position_bias
from steelyard_eval.learn.counts import CODE, InterleavingResult, PositionCounts, describe_interleaving
from steelyard_eval.learn.first_ten import DISCOUNT, PLACES
from steelyard_eval.learn.gains import fit
from steelyard_eval.learn.position_bias import examine, exponent_by_intervention_harvesting, from_given


def cells(rows):
    """PositionCounts from (row, place from 1, shows, acts)."""
    row, place, shown, acts = np.array(rows, dtype=float).T
    return counted(made()[0], row, place - 1, shown, acts=acts)


# By hand


def test_one_entry_at_two_places_gives_the_exponent_of_their_ratio():
    """900 acts of 1,000 at place 1, 225 of 1,000 at place 4: 4 ** -e = 1/4, so e is 1 whatever the prior."""
    found, acts = exponent_by_intervention_harvesting(cells([(0, 1, 1000, 900), (0, 4, 1000, 225)]))
    assert found.exponent == pytest.approx(1.0, abs=1e-6)
    assert acts == 1125
    # log(8)/log(4) = 1.5 of 800 and 100 acts, with so weak a prior that it does not count
    found, _ = exponent_by_intervention_harvesting(cells([(0, 1, 1000, 800), (0, 4, 1000, 100)]), strength=1e-9)
    assert found.exponent == pytest.approx(1.5, abs=1e-5)


def test_given_probabilities_are_taken_as_they_are():
    given = np.full(PLACES, np.nan)
    given[[0, 1, 3]] = 0.8, 0.4, 0.2
    assert from_given(given).exponent == pytest.approx(1.0)
    assert examine(made()[0].pairs, cells([(0, 1, 9, 3)]), given).source == "given"


@pytest.mark.parametrize(("estimate", "exponent"), [(-0.5, 0.0), (1.0, 1.0), (3.5, 3.0)])
def test_an_exponent_is_brought_to_its_bounds(estimate, exponent):
    assert position_bias.PositionBias(estimate, 0.2, "joint").exponent == exponent


def test_values_are_discounted_sums_of_the_first_places():
    lists, _ = made()
    gains = np.zeros(lists.pairs.rows)
    gains[lists.top[0, 0, [0, 2]]] = 1.0, 0.5
    # 1/log2(2) + 0.5/log2(4)
    assert lists.pairs.values(lists.top[0, 0], gains) == pytest.approx(1.25)
    assert DISCOUNT[2] == 0.5
    assert lists.pairs.ideal(gains)[0] == pytest.approx(1 + 0.5 / np.log2(3))


def test_the_first_places_are_those_of_the_scores():
    """By numpy: the weighted sum of the features, which the world's normalisation makes of its columns."""
    lists, _ = made()
    pairs = lists.pairs
    for candidate in (0, 20, len(lists) - 1):
        scores = pairs.features @ lists.block.weights[candidate]
        for query in (0, 100):
            begin, end = pairs.offsets[query], pairs.offsets[query + 1]
            order = begin + np.argsort(-scores[begin:end], kind="stable")[:PLACES]
            assert lists.top[candidate, query].tolist() == order.tolist()


def test_teams_take_turns_and_never_repeat_an_entry():
    drafted = draft_teams("abcd", "bade", 4, iter([True, False]).__next__)
    assert drafted == [("a", True), ("b", False), ("d", False), ("c", True)]
    assert Explore(0.2) == Explore(0.2) != Explore(0.3)  # whatever was drawn


def test_the_sign_test_is_exact():
    assert InterleavingResult("x", wins=5).p == pytest.approx(2 / 32)
    assert InterleavingResult("x", wins=3, losses=3).p == 1.0
    assert InterleavingResult("x", ties=9).p == 1.0


# By construction


def simulated(model="pbm", sessions=4000, seed=0, explore="none", **world):
    lists, grades = made(**world)
    rng = np.random.default_rng(seed)
    return lists, grades, cells_of(simulate(lists, grades, 0, model, sessions, rng, explore=explore), lists)


def test_the_exponent_is_recovered_and_its_interval_covers():
    """The position-based model examines place k with probability 1 / k. 12 logs each; 95% intervals."""
    for explore, source in (("none", "joint"), ("interleave", "harvested")):
        logs = [simulated(seed=seed, explore=explore) for seed in range(12)]
        found = [examine(lists.pairs, own) for lists, _, own in logs]
        assert {one.source for one in found} == {source}
        assert np.mean([one.exponent for one in found]) == pytest.approx(1.0, abs=0.12)
        assert sum(abs(one.exponent - 1) <= 1.96 * one.error for one in found) >= 10


def test_the_posterior_tells_shown_entries_apart():
    lists, grades, own = simulated(sessions=8000)
    classes, shown = fit(lists.pairs, own, 1.0), np.unique(own.row)
    right, wrong = (classes.relevance[shown][(grades[shown] > 0) == relevant].mean() for relevant in (True, False))
    assert right > 0.7 and wrong < 0.1
    assert classes.lift > 5


def test_the_strength_of_an_act_is_learned_and_a_dismissal_speaks_against():
    """Acts on irrelevant entries are called opened, on relevant ones accepted; a tenth of each the other way."""
    lists, grades, own = simulated(sessions=8000)
    rng = np.random.default_rng(0)
    acts, clicks, relevant = np.zeros_like(own.acts), own.acts[:, CODE["clicked"]], grades[own.row] > 0
    turned = rng.binomial(clicks.astype(int), 0.1)
    acts[:, CODE["accepted"]] = np.where(relevant, clicks - turned, turned)
    acts[:, CODE["opened"]] = clicks - acts[:, CODE["accepted"]]
    acts[:, CODE["dismissed"]] = rng.binomial(own.shown.astype(int), np.where(relevant, 0.01, 0.2))
    mixed = PositionCounts.of(lists.pairs, own.row, own.place, own.shown, acts)
    found = fit(lists.pairs, mixed, 1.0).strengths(mixed)
    assert found["accepted"] > 5 * found["opened"]
    assert found["dismissed"] < 0.5


def test_weights_that_are_best_already_are_kept():
    best = "weighted_sum(0.22*bm25, 0.78*vector, normalize=minmax)"
    lists, grades, own = simulated(seed=1, strategy=best)
    value = truth(lists, grades)
    assert value[0] > value.max() - 0.01
    assert value[tried(lists, own)] >= value[0] - 1e-3


def test_labels_decide_where_clicks_follow_a_signal():
    """A world where keywords are worthless and clicks follow them: the log misleads, 60 labels do not."""
    lists, grades, own = simulated("attract", 20_000, strategy=LEANING)
    value = truth(lists, grades)
    verdict, candidate = decided(lists, grades, own, np.arange(0, 240, 4))
    assert verdict != "ship" or value[candidate] >= value[0] - 1e-3


def test_what_clicks_follow_is_named():
    """The model draws acts to keywords by .3 of their value, and the label of a relevant entry to .85."""
    lists, grades, own = simulated("attract", 20_000, strategy=LEANING)
    pairs = lists.pairs
    qrels = {name: {} for name in pairs.queries}
    for row in np.flatnonzero(grades):
        qrels[pairs.queries[pairs.query[row]]][pairs.entries[pairs.entry[row]]] = 1
    _, _, honest = simulated("pbm", 20_000, strategy=LEANING)
    found, other = (
        {one.label for one in position_bias.feedback_biases(pairs, log, qrels) if one.followed}
        for log in (own, honest)
    )
    assert {"the label", "bm25"} <= found
    assert "vector" not in found
    assert other == {"the label"}


@pytest.mark.parametrize("rows", [[(0, 1, 1, 1)], [(0, 1, 1, 0)], [(0, 1, 2, 1), (30, 2, 1, 1)]])
def test_a_log_of_a_search_or_two_decides_nothing_and_breaks_nothing(rows):
    lists, _ = made()
    own = cells(rows)
    assert tried(lists, own) == 0
    seen = learned(lists, own)[0].views(lists.top[[0, 5]])
    assert np.isfinite(seen.error).all()


# The verdict on interleaved rankings


def fought(*clients):
    """A result of clients, each with its name, searches won, tied and lost, and what is said of it."""
    result = InterleavingResult("b1")
    for name, *counts in clients:
        for balance, count in zip((1, 0, -1), counts, strict=True):
            for _ in range(count):
                result.add(balance, name)
    return result, describe_interleaving(result, {})


def test_a_preference_has_scipys_p_and_interval_and_says_who_agrees():
    found, said = fought(("ann", 12, 3, 2), ("bob", 5, 0, 1), ("eve", 0, 2, 1), ("dan", 0, 4, 0))
    test = binomtest(17, 21)
    assert (found.wins, found.ties, found.losses) == (17, 9, 4)
    assert found.p == pytest.approx(test.pvalue)
    ends = test.proportion_ci(0.95, "exact")
    assert (said.facts["low"], said.facts["high"]) == pytest.approx((ends.low, ends.high))
    assert (said.key, said.facts["not"]) == ("turns_preferred", False)
    assert (said.facts["same"], said.facts["clients"]) == (2, 3)
    assert fought(("ann", 0, 0, 6))[1].facts["not"] is True
    # without one it is open, or nothing was acted upon
    keys = [fought(("ann", *counts))[1].key for counts in ((7, 2, 3), (0, 5, 0))]
    assert keys == ["turns_open", "turns_untold"]
