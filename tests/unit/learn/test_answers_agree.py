"""Gain, interval and odds of every command come from one estimator, so they agree by arithmetic and in words."""

import re

import numpy as np
import pytest
import scipy.stats

from steelyard_eval.choose.answer import MAX_SENTENCE_CHARS, describe_decision
from steelyard_eval.choose.rule import Ruling
from steelyard_eval.common.formatting import interval, tells
from steelyard_eval.compare.answer import answer
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.paired import difference_interval, paired
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Message, Row

STARTER = load(starter())
RESULTS = [400, pytest.param(2_000, marks=pytest.mark.nightly)]
"""Of each of the commands; learn says what recommend does."""
STATED = re.compile(r"([+-]?\d\.\d{3})[^(]*\(([+-]?\d\.\d{3}) to ([+-]?\d\.\d{3}), 95% sure; ([^)]*)\)")
ODDS = re.compile(r"(?:(less than 1|1|2) in ([\d,]+)) that it is (worse|better)")


def differences(rng):
    """Differences of 2 to 200 queries, some of them in groups, with many ties, as real ones have."""
    n = int(rng.integers(2, 200))
    values = rng.normal(rng.normal(0, 0.1), rng.uniform(0.02, 0.5), n) * (rng.random(n) < rng.uniform(0.2, 1))
    groups = np.arange(n) if rng.random() < 0.5 else rng.integers(0, max(2, n // 2), n)
    return np.clip(values, -1, 1), groups


def told(key, gain, **facts):
    """A sentence that states a gain."""
    vague = gain.worse is not None and not tells(gain.low, gain.high)
    known = {"gain": gain.shown(-1.0), "worse": None if vague else gain.worse, "vague": vague}
    return say(Message(key, {**facts, **known}))


def of_gate(rng):
    values, groups = differences(rng)
    units = len(set(groups.tolist()))
    gain = Gain.within(difference_interval(values, groups.tolist()), units)
    return gain, told("fail", gain, choice="mine", finding="gate_baseline"), units - 1


def of_compare(rng):
    values, _ = differences(rng)
    own = paired({"mine": 0.5 + values / 2}, np.full(len(values), 0.5))["mine"]
    gain = Gain.within(Interval(own.gain.mean, own.gain.low, own.gain.high), len(values))
    rows = [Row("bm25", "system", "bm25"), Row("mine", "lists", "a run", against=own)]
    return gain, say(answer(rows, "bm25", "nDCG@10", STARTER, {}, {})), len(values) - 1


@pytest.mark.parametrize("results", RESULTS)
@pytest.mark.parametrize("command", [of_compare, of_gate])
def test_gain_interval_and_odds_are_of_one_distribution(command, results):
    rng = np.random.default_rng(32)
    for _ in range(results):
        gain, sentence, degrees = command(rng)
        if gain.worse is None or gain.high - gain.low > 1:  # a single unit, nothing varies, or nothing is known
            assert "95% sure" not in sentence
            continue
        if STATED.search(sentence) is None:  # equal on every query
            assert gain.mean == 0
            continue
        error = (gain.high - gain.low) / 2 / scipy.stats.t.ppf(0.975, degrees)
        assert gain.mean == pytest.approx((gain.low + gain.high) / 2, abs=1e-12)
        assert gain.worse == pytest.approx(scipy.stats.t.cdf(0, degrees, gain.mean, error), abs=1e-9)
        assert len(sentence) <= MAX_SENTENCE_CHARS
        # The printed interval is without 0 exactly where the printed odds are smaller than 1 in 40.
        mean, low, high = map(float, STATED.search(sentence).groups()[:3])
        share, number, what = ODDS.search(sentence).groups()
        one_in = int(number.replace(",", "")) / (2 if share == "2" else 1)
        assert low <= mean <= high
        assert what == ("worse" if gain.mean >= 0 else "better")
        assert one_in >= 40 or low <= 0 <= high
        assert one_in <= 40 or not low < 0 < high


@pytest.mark.parametrize(
    ("gain", "told_so", "never"),
    [
        # 0.9 + 1.96 * .1 = 1.096, and metrics lie in [0, 1], so no difference is more than 1
        (Gain.of(0.9, 0.1), "+0.704 to +1.000, 95% sure; less", "1.096"),
        # of two queries that tie: t(.975, 1) = 12.706, times sqrt(.65^2 / 1 / 2) = .4596, is 5.84: no news
        (Gain.within(difference_interval([0.0, 0.0]), 2), "", "95% sure"),
        # +0.0051 [-0.0282, 0.0384] was printed with "1 in 12"; the error is .0333 / 1.96 = .017, Phi(-.3) .38
        (Gain.of(0.0051, 0.017), "; 2 in 5 that", "1 in 12"),
    ],
)
def test_what_cannot_be_known_is_not_printed_as_knowledge(gain, told_so, never):
    sentence = told("gate_baseline", gain)
    assert (told_so in sentence, never in sentence) == (True, False)


def test_intervals_of_tables_end_where_differences_do():
    shown = interval(-1.096, -0.704, signed=True), interval(-5.84, 5.84), interval(0.1, 0.5)
    assert shown == ("[-1.000, -0.704]", "[too few queries]", "[0.100, 0.500]")


@pytest.mark.parametrize("results", RESULTS)
def test_a_recommendation_prints_the_range_that_was_computed_and_none_that_tells_nothing(results):
    rng = np.random.default_rng(33)
    spans = 0
    for _ in range(results):
        before, error = float(rng.uniform(0.05, 0.95)), 10 ** rng.uniform(-3, 1)
        gain = Gain.of(float(rng.normal(0, 0.1)), error)
        said = say(describe_decision(Ruling("ship", 0, gain, 0.1, None), "bm25", "nDCG@10", "soleri", before))
        low, high = (min(max(end, -before), 1 - before) for end in (gain.low, gain.high))
        shown = re.search(r"\(gain ([+-]?[\d.]+) to ([+-]?[\d.]+), 95% sure\)", said)
        assert (shown is None) == (high - low > 1 - 1e-12), said
        if shown:
            spans += 1
            assert [*map(float, shown.groups())] == pytest.approx([low, high], abs=0.005001)
            assert not re.search(r"-0\.000? ", said)
    assert 0 < spans < results


def test_an_estimate_without_any_spread_known_has_no_range():
    ruling = Ruling("try", 0, Gain.of(0.05, np.inf), 0.1, None)
    assert "sure" not in say(describe_decision(ruling, "bm25", "nDCG@10", "soleri", 0.5))
