"""What is said without labels, and with few."""

from dataclasses import replace

import numpy as np
import pytest
from shared import beside, tabled

import steelyard_eval as sy
from steelyard import find_system, parse_strategy
from steelyard_eval.choose import few_labels
from steelyard_eval.choose.blockers import chosen_queries
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.few_labels import advise, decide_from_pairs, decide_with_public_prior, fact_signals_used
from steelyard_eval.choose.public import DEFAULT, PriorGains, PublicGains, near_default, public_table
from steelyard_eval.choose.rule import ALL_FAMILIES, Expectation, apply_rule
from steelyard_eval.result.sentences import say


def config_of(text, system="plain"):
    made = find_system(system).config(10, "minilm")
    return made.with_strategy(parse_strategy(text)) if text else made


TABLE = beside(__file__)
ELSEWHERE, BEHIND = TABLE["elsewhere"].values()
"""Collections without LoCoMo's, whose unanswerable questions counted in the experiment that this rests on, and how
far behind the best the default was in it.
"""


@tabled
def test_the_table_has_what_an_independent_run_found(system, text, behind):
    table = public_table()
    at = [[one["name"] for one in table.about["collections"]].index(name) for name in ELSEWHERE]
    found = table.against(config_of(text, system), "minilm").gains[at]
    assert found == pytest.approx(np.subtract(behind, BEHIND), abs=0.004)


def test_a_sum_that_was_not_run_is_compared_with_the_next_tenth_and_says_so():
    found = public_table().against(config_of("weighted_sum(0.22*bm25, 0.78*vector, normalize=minmax)"), "minilm")
    assert found.near == "weighted_sum(0.2*bm25, 0.8*vector, normalize=minmax)"
    assert found.facts["near"]


class TestSaid:
    @tabled
    def test_what_is_near_default_a_guess_as_the_default(self, text, good):
        assert near_default(config_of(text or DEFAULT)) is good

    def test_without_labels_the_default_is_worth_trying_and_no_gain_is_stated_for_these_notes(self):
        found = advise("bm25", config_of("", "bm25"), 10, "minilm")
        assert found.verdict == "try"
        assert str(found.attempt.strategy) == DEFAULT
        facts = found.message.facts
        assert (found.message.key, facts["unmeasured"]) == ("public_try", True)
        assert (facts["collections"], facts["better"]) == (10, 9)
        assert facts["gained"] > 0
        assert len(say(found.message)) <= 200

    @tabled
    def test_where_nothing_is_known_the_current_one_is_kept(self, system, strategy, model, why):
        config = config_of(strategy, system) if system else None
        found = advise("current", config, 10, model)
        assert (found.verdict, found.attempt, found.message.key) == ("keep", None, why)

    @tabled
    def test_what_ranks_by_facts_that_no_public_collection_has_is_kept(self, system, severities, tagged, known):
        entries = [{"id": str(at), "text": "t", "severity": s, "tags": [s]} for at, s in enumerate(severities)]
        entries[0] |= {"tags": ["rust"], "importance": 3}
        made = sy.load(entries, [{"id": "q", "text": "t", "tags": ["rust"] if tagged else []}], {}).dataset
        config = config_of("", system)
        assert fact_signals_used(config, made) == known
        found = advise(system, config, 10, "minilm", facts=known)
        assert found.verdict == ("keep" if known else "try")
        if known:
            assert (found.message.key, found.message.facts["facts"]) == ("public_lacks", known)
            # so that few labels do not start from what was measured without these facts
            assert found.shown is None

    def test_a_signal_counts_under_one_weight_though_another_is_0(self):
        text = "weighted_sum(1*fts, 0*importance, 1*weighted_sum(1*vector, 0.2*importance))"
        entries = [{"id": str(at), "text": "t", "importance": at} for at in (1, 2)]
        assert fact_signals_used(config_of(text), sy.load(entries, [], {}).dataset) == ["importance"]

    def test_a_default_that_was_worse_elsewhere_is_not_tried(self, monkeypatch):
        losing = replace(public_table(), means={"minilm": {DEFAULT: np.full(10, 0.4), "bm25": np.full(10, 0.5)}})
        monkeypatch.setattr("steelyard_eval.choose.public.public_table", lambda: losing)
        assert advise("bm25", config_of("", "bm25"), 10, "minilm").verdict == "keep"

    def test_what_was_shown_counts_collections_and_names_the_worst(self):
        assert not PublicGains(np.array([0.3, -0.1, -0.1, 0.0])).likely  # better on one of four
        assert not PublicGains(np.array([0.1, 0.1, -0.4])).likely  # on two of three, and worse on average
        assert PublicGains(np.array([0.1, 0.1, -0.1])).facts["worst"] == pytest.approx(-0.1)


# The rules of few labels


def test_a_posterior_starts_from_what_is_known_and_lies_ahead_by_its_deviations():
    rows = np.array([[0.1, 0.3]])
    # Known: 0 with a variance of .08, worth ten queries. Mean (2 * .2 + 10 * 0) / 12; variance between queries
    # (2 * .02 + 10 * .08) / 12 = .07, and of the mean .07 / 12.
    known = PriorGains(np.array([0.0]), np.array([0.08]), np.array([10.0]))
    assert few_labels.ahead_by(rows, np.arange(2), known, 0.5) == pytest.approx(
        [0.4 / 12 - 0.5 * np.sqrt(0.07 / 12)]
    )
    # Nothing known: the mean .2 less half of sqrt(.02 / 2) = .1.
    assert few_labels.ahead_by(rows, np.arange(2), PriorGains.none(1), 0.5) == pytest.approx([0.15])


def evidence(current, default, third, n):
    """Of three candidates' gains on n queries, a little apart."""
    wave = 0.01 * np.cos(np.arange(n))
    rows = np.array([[current], [default], [third]]) + np.array([wave * 0, wave, -wave])
    return Scored.of(rows.astype(np.float32), rows.astype(np.float32))


KEEP = few_labels.FewLabelCandidates(np.array([1, 2]), np.zeros(2), np.zeros(2), 1)
"""Nothing is known of what is used today; what is kept stands."""
TRY = replace(KEEP, known_current=-0.1, favoured=True)  # the default gained .1 over it on public collections
ADVICE = {"keep": KEEP, "try": TRY}


class TestRules:
    @tabled
    def test_who_leads_by_what_is_known_and_by_labels(self, advice, default, third, n, leader):
        assert ADVICE[advice].leader(evidence(0, default, third, n)) == leader

    def test_one_of_thousands_has_to_be_further_ahead_than_a_contender(self):
        wave = np.tile([0.0, 0.2], 10)
        rows = np.array([wave * 0, wave * 0, wave * 0 - 1, wave]).astype(np.float32)
        # A mean of .1 with a deviation of .1 * sqrt(20 / 19) / sqrt(20): 4.4 deviations. Four times as wide: 1.1.
        assert TRY.leader(Scored.of(rows, rows), 3) == 3
        rows[3] = 0.1 + 4 * (rows[3] - 0.1)
        assert TRY.leader(Scored.of(rows, rows), 3) == 1
        assert replace(TRY, rows=np.array([1, 3])).leader(Scored.of(rows, rows)) == 3

    @tabled
    def test_a_keep_is_reconsidered(self, n, third, advice, verdict, candidate, public):
        own = evidence(0, -0.1, third, n)
        kept = replace(apply_rule(Expectation(own), ALL_FAMILIES), verdict="keep", candidate=None)
        why = chosen_queries("by hand")
        found, rests = decide_with_public_prior(
            kept, Expectation(own), ALL_FAMILIES, ADVICE[advice], n, lambda _: why
        )
        assert (found.verdict, found.candidate, rests) == (verdict, candidate, public)
        assert found.blocker == (why if verdict == "try" else None)

    def test_without_labels_only_public_collections_speak(self):
        own = evidence(0, 0.1, 0.3, 20)
        shipped = replace(apply_rule(Expectation(own), ALL_FAMILIES), verdict="ship", candidate=2)
        found, rests = decide_with_public_prior(shipped, Expectation(own), ALL_FAMILIES, TRY, 0)
        assert (found.verdict, found.candidate, rests) == ("try", 1, True)

    @pytest.mark.parametrize(("n", "verdict"), [(19, "try"), (20, "ship")])
    def test_below_twenty_labels_nothing_ships(self, n, verdict):
        own = evidence(0, 0.2, 0.3, n)
        shipped = replace(apply_rule(Expectation(own), ALL_FAMILIES), verdict="ship", candidate=2)
        found, _ = decide_with_public_prior(shipped, Expectation(own), ALL_FAMILIES, TRY, n)
        assert (found.verdict, found.candidate) == (verdict, 2)
        assert (found.blocker is None) is (verdict == "ship")
        assert decide_with_public_prior(shipped, Expectation(own), ALL_FAMILIES, None, n)[0].verdict == verdict

    def test_a_duel_led_by_what_is_used_keeps_it(self):
        own = evidence(0, 0.2, 0.3, 20)
        assert decide_from_pairs(Expectation(own), ALL_FAMILIES, 2).candidate == 2
        assert decide_from_pairs(Expectation(own), ALL_FAMILIES, None).verdict == "keep"
