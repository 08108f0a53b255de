"""Fusions by hand: every number is derived beside it; mem0's beside a script that follows its scoring.py."""

import math
from math import exp, sqrt

import numpy as np
import pytest
from tabled import tabled

from steelyard.base.errors import ConfigError
from steelyard.fusion import compile_plan, fuse, parse_strategy
from steelyard.fusion.plan import Explanation
from steelyard.grammar import Duration
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.signals import PRIORS
from steelyard.stores.base import Found
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.table.join import join
from steelyard.testing import random_table
from steelyard.testing.fusions import recomputed
from steelyard_eval.recording.replay import contributions

DAY = 86_400.0
NOW = 1_795_305_600.0
TM2C2 = "weighted_sum(0.2*bm25, 0.8*vector, normalize=tmm)"


def tabled_lists(*lists, entries=(), queries=None, scorers=(), ends=()):
    """A table of one query for each dict of lists, written as {retriever: {id: score}}."""
    known = {entry.id: entry for entry in entries}
    asked = queries or [Query("t", id=f"q{at}") for at in range(len(lists))]
    found = []
    for own in lists:
        best = {name: sorted(scores.items(), key=lambda s: (-s[1], s[0])) for name, scores in own.items()}
        found.append({name: [Found(*hit, at) for at, hit in enumerate(hits, 1)] for name, hits in best.items()})

    def facts(ids, _):
        return [known.get(id_, Entry(id_)) for id_ in ids]

    return join(asked, [NOW] * len(asked), found, dict(scorers), facts, ends=ends)


def scored(table, strategy, q=0):
    """{id: score} of what a strategy ranks for one query."""
    scores = fuse(table, parse_strategy(str(strategy)))
    rows = range(table.offsets[q], table.offsets[q + 1])
    return {table.entries[table.entry[r]]: scores[r] for r in rows if not np.isnan(scores[r])}


# x is second of the vectors, fifth of bm25 and first of a list of weight 1.5 (fts stands for the graph).
WORKED = {
    "vector": {"a": 9.0, "x": 8.0},
    "bm25": {"b": 9.0, "c": 8.0, "d": 7.0, "e": 6.0, "x": 5.0},
    "fts": {"x": 1.0},
}
APART = {"fts": {"a": 1.0}, "vector": {"b": 1.0}}
OF_421 = {"fts": {"a": 4.0, "b": 2.0, "c": 1.0}, "vector": {"d": 1.0}}
TIERS = {"fts": {"a": 3.0, "b": 2.0}, "vector": {"a": 0.5, "c": 1.0}}
LADDER = "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])"
MINMAXED = "layered(1*weighted_sum(1*l0, normalize=minmax), threshold=0.5)"
PLAIN = 1 / 62 + 1 / 65 + 1 / 61


def best_of(value):
    return {"l0": {"a": value, "b": 0.1}, "l1": {"a": 0.6}, "l2": {"a": 0.2, "b": 0.8}}


@pytest.mark.parametrize(
    ("lists", "strategy", "expected"),
    [
        # the worked example of spec-kit: 1/62 + 1/65 + 1.5/61 = 0.056104; times 1.10 = 0.061714
        (WORKED, "rrf(vector, bm25, 1.5*fts, k=60)", {"x": 1 / 62 + 1 / 65 + 1.5 / 61}),
        (WORKED, "rrf(vector, bm25, 1.5*fts, k=60, bonus=times(0.1))", {"x": 1.1 * (1 / 62 + 1 / 65 + 1.5 / 61)}),
        # a bonus is for entries of two lists or more: a stands in one, x in three
        (WORKED, "rrf(vector, bm25, fts, k=60, bonus=times(0.5))", {"x": PLAIN * 1.5, "a": 1 / 61}),
        (WORKED, "rrf(vector, bm25, fts, k=60, bonus=once(0.1))", {"x": PLAIN + 0.1, "a": 1 / 61}),
        (WORKED, "rrf(vector, bm25, fts, k=60, bonus=each(0.1))", {"x": PLAIN + 0.2, "a": 1 / 61}),
        (WORKED, "rrf(vector, 2*bm25, k=[1, 60])", {"x": 1 / 3 + 2 / 65, "a": 1 / 2}),
        (APART, "rrf(fts, vector, k=1)", {"a": 0.5, "b": 0.5}),  # absence is not the last rank
        ({"fts": {"a": 0.0}, "vector": {"a": 0.0, "b": -1.0}}, "rrf(fts, vector, k=1)", {"a": 1.0, "b": 1 / 3}),
        # the only value of a list, and equal ones, which rank by id
        ({"vector": {"d": 0.3}}, "weighted_sum(1*vector, normalize=rank)", {"d": 1.0}),
        ({"fts": {"a": 0.1, "b": 0.1}}, "weighted_sum(1*fts, normalize=rank)", {"a": 1.0, "b": 0.5}),
        # a list whose maximum is not positive contributes 0
        *(
            (
                {"fts": {"a": 2.0}, "vector": {"a": top, "b": top - 1}},
                "weighted_sum(0.3*fts, 0.7*vector, normalize=max)",
                {"a": 0.3, "b": 0.0},
            )
            for top in (0.0, -0.5)
        ),
        (TIERS, "tiered(fts, min_results=2, then=vector)", {"a": 3.0, "b": 2.0}),
        (TIERS, "tiered(fts, min_results=3, then=vector)", {"a": 0.5, "c": 1.0}),
        # fts is enough for the inner tier and too little for the outer
        (
            {"fts": {"a": 1.0, "b": 2.0}, "bm25": {"c": 5.0}},
            "tiered(tiered(fts, min_results=1, then=vector), min_results=3, then=bm25)",
            {"c": 5.0},
        ),
        # the ladder goes down until something passes; the threshold itself passes
        (best_of(0.9), LADDER, {"a": 0.2 * 0.9 + 0.3 * 0.6 + 0.5 * 0.2}),
        (best_of(0.5), LADDER, {"a": 0.2 * 0.5 + 0.3 * 0.6 + 0.5 * 0.2}),
        (best_of(0.45), LADDER, {"a": 0.2 * 0.45 + 0.3 * 0.6 + 0.5 * 0.2}),
        (best_of(0.35), LADDER, {"a": 0.2 * 0.35 + 0.3 * 0.6 + 0.5 * 0.2}),
        (best_of(0.29), LADDER, {"a": 0.2, "b": 0.8}),  # the last layer alone
        # a layer that an entry lacks adds 0, and without the first one it does not pass
        (
            {"l0": {"a": 0.9, "b": 0.8}, "l1": {"a": 0.6, "c": 1.0}, "l2": {"b": 0.5, "c": 1.0}},
            LADDER,
            {"a": 0.36, "b": 0.41},
        ),
        # from 0.35 the next step is 0.3, never up to 0.4
        (
            {"l0": {"a": 0.32, "b": 0.3}, "l1": {}, "l2": {"a": 0.5}},
            "layered(1*l0, 1*l1, 1*l2, threshold=0.35, relax=[0.4, 0.3])",
            {"a": 0.82, "b": 0.3},
        ),
        # 0.9, 0.8, 0.2 become 1, 6/7, 0; were they scaled anew after the gate, b would fall to 0
        *(
            ({"l0": {"a": 0.9, "b": 0.8, "c": 0.2}}, text, {"a": 1.0, "b": 6 / 7})
            for text in (MINMAXED, f"weighted_sum(1*{MINMAXED})", f"tiered({MINMAXED}, min_results=2, then=fts)")
        ),
        # one of three entries passes the gate: too few for min_results=2
        (
            {"l0": {"a": 0.9, "b": 0.1, "c": 0.1}, "fts": {"z": 1.0}},
            "tiered(layered(1*l0), min_results=2, then=fts)",
            {"z": 1.0},
        ),
        (APART, "weighted_sum(1*fts, 1*importance)", {"a": 1.5}),  # priors score what retrievers found
        (APART, "importance", {"a": 0.5, "b": 0.5}),  # and alone rank every candidate
    ],
)
def test_scores_by_hand(lists, strategy, expected):
    got = scored(tabled_lists(lists), strategy)
    assert {id_: got[id_] for id_ in expected} == pytest.approx(expected, abs=1e-15)
    assert lists is WORKED or got.keys() == expected.keys()


def test_ranks_and_counts_are_taken_after_the_depth_mask():
    """At depth 1 b leaves fts; its vector rank stays 1."""
    table = tabled_lists({"fts": {"a": 2.0, "b": 1.0}, "vector": {"b": 1.0}}).at_depth({"fts": 1, "vector": 1})
    assert scored(table, "rrf(fts, vector, k=1)") == {"a": 0.5, "b": 0.5}
    table = tabled_lists(TIERS).at_depth({"fts": 1, "vector": None})
    assert scored(table, "tiered(fts, min_results=2, then=vector)") == {"a": 0.5, "c": 1.0}


class TestNormalisations:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("none", [4, 2, 1]),
            ("max", [1, 0.5, 0.25]),
            ("minmax", [1, 1 / 3, 0]),
            # mean 7/3, variance (25 + 1 + 16)/27 = 14/9, deviation sqrt(14)/3
            ("zscore", [5 / sqrt(14), -1 / sqrt(14), -4 / sqrt(14)]),
            ("rank", [1, 2 / 3, 1 / 3]),
            # the sample's deviation is sqrt(7/3); 1/2 + (x - 7/3) / (6 sqrt(7/3)), which no value clips
            ("dbsf", [0.5 + 5 / (18 * sqrt(7 / 3)), 0.5 - 1 / (18 * sqrt(7 / 3)), 0.5 - 4 / (18 * sqrt(7 / 3))]),
        ],
    )
    def test_a_list_of_4_2_1(self, name, expected):
        got = scored(tabled_lists(OF_421), f"weighted_sum(1*fts, 0*vector, normalize={name})")

        assert [got[id_] for id_ in "abc"] == pytest.approx(expected, abs=1e-15)
        assert got["d"] == 0.0

    @pytest.mark.parametrize(("name", "value"), [("max", 1.0), ("minmax", 1.0), ("zscore", 0.0), ("dbsf", 0.5)])
    @pytest.mark.parametrize("score", [0.1, 0.7, 1e-300, 12345.678])
    def test_a_list_of_equal_values(self, name, value, score):
        """0.1 + 0.1 + 0.1 is not 3 * 0.1, so a mean may lie beside the values; they are equal all the same."""
        table = tabled_lists({"fts": dict.fromkeys("abc", score)})
        assert set(scored(table, f"weighted_sum(1*fts, normalize={name})").values()) == {value}


def test_tm2c2_is_the_convex_combination_of_bruch_gai_and_ingber():
    """By numpy alone: 0.2 x bm25 / max + 0.8 x (cosine + 1) / (max + 1), and 0 for what a list does not hold."""
    rng = np.random.default_rng(7)
    bm25, cosine = rng.gamma(2.0, 4.0, 40), rng.uniform(-1.0, 1.0, 40)
    has_words, is_near = rng.random((2, 40)) < 0.7
    lists = {
        "bm25": {f"e{at}": bm25[at] for at in np.flatnonzero(has_words)},
        "vector": {f"e{at}": cosine[at] for at in np.flatnonzero(is_near)},
    }
    got = scored(tabled_lists(lists, ends=[{"bm25": (0.0, 99.0), "vector": (-1.0, 1.0)}]), TM2C2)

    expected = 0.2 * np.where(has_words, bm25 / bm25[has_words].max(), 0.0)
    expected += 0.8 * np.where(is_near, (cosine + 1) / (cosine[is_near].max() + 1), 0.0)
    assert got == {f"e{at}": pytest.approx(expected[at], abs=1e-12) for at in np.flatnonzero(has_words | is_near)}


@pytest.mark.parametrize(
    ("strategy", "lists", "expected"),
    [
        (
            "weighted_sum(1*fts, normalize=max)",
            ({"fts": {"a": 4.0, "b": 2.0}}, {"fts": {"a": 10.0, "b": 1.0}}),
            ({"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 0.1}),
        ),
        (
            "tiered(fts, min_results=2, then=vector)",
            (TIERS, {"fts": {"a": 3.0}, "vector": {"z": 1.0}}, {"fts": {}, "vector": {"y": 0.2}}),
            ({"a": 3.0, "b": 2.0}, {"z": 1.0}, {"y": 0.2}),
        ),
        (
            LADDER,
            ({"l0": {"a": 0.9}, "l1": {}, "l2": {}}, {"l0": {"a": 0.1}, "l1": {}, "l2": {"b": 0.7}}),
            ({"a": pytest.approx(0.18)}, {"b": 0.7}),
        ),
        ("by_intent(default=fts, fix=vector)", (APART,) * 3, ({"b": 1.0}, {"a": 1.0}, {"a": 1.0})),
    ],
)
def test_each_query_has_its_own_scale_tier_and_steps(strategy, lists, expected):
    queries = [Query("t", id=f"q{at}", intent=["fix", "", "odd"][at]) for at in range(len(lists))]
    table = tabled_lists(*lists, queries=queries)
    assert tuple(scored(table, strategy, q) for q in range(len(lists))) == expected


@pytest.mark.parametrize(
    ("strategy", "lists", "needs"),
    [
        # only queries left short need the second tier
        (
            "tiered(fts, min_results=2, then=vector)",
            (TIERS, {"fts": {}, "vector": {"z": 1.0}}),
            {"fts": [True, True], "vector": [False, True]},
        ),
        # fts is enough for the inner tier and too little for the outer: bm25 must be asked for
        (
            "tiered(tiered(fts, min_results=1, then=vector), min_results=3, then=bm25)",
            ({"fts": {"a": 1.0, "b": 2.0}},),
            {"fts": [True], "vector": [False], "bm25": [True]},
        ),
    ],
)
def test_a_tier_needs_the_next_one_where_it_is_too_short(strategy, lists, needs):
    found = parse_strategy(strategy).needs(tabled_lists(*lists), [*needs])
    assert {name: asked.tolist() for name, asked in found.items()} == needs


@pytest.mark.parametrize(
    ("strategy", "lacking"),
    [("tiered(fts, min_results=2, then=vector)", "vector"), ("weighted_sum(1*fts, 1*cosine)", "cosine")],
)
def test_a_signal_that_a_query_needs_and_the_table_lacks_is_an_error(strategy, lacking):
    with pytest.raises(ConfigError, match=f"signal '{lacking}'"):
        fuse(tabled_lists({"fts": {"a": 1.0}}), parse_strategy(strategy))


@tabled
def test_what_is_left_of_a_strategy(strategy, gone, left):
    rest = parse_strategy(strategy).without(set(gone))
    assert (rest if rest is None else str(rest)) == left


@tabled
def test_a_prior_by_hand(name, facts, asked, value):
    """`asked` are the half-life, or the tags of the query."""
    facts = {key: NOW - own * DAY if key.endswith("_at") else own for key, own in facts.items()}
    query = Query("t", id="q", tags=tuple(asked.split()))
    table = tabled_lists({"fts": {"a": 1.0}}, entries=[Entry("a", **facts)], queries=[query])
    options = {"half_life": Duration(int(asked[:-1]), asked[-1])} if name == "recency" else {}
    assert PRIORS[name](table, options).values[0] == pytest.approx(value, abs=1e-15)


FORMULA = parse_strategy("gated(vector, bm25, least=0.1)")


def table_of(cosines, scores, terms):
    """The table of one query: {id: cosine}, {id: bm25}, and how many terms the query has."""
    count = {"terms": lambda query, ids: np.full(len(ids), float(terms))}
    return tabled_lists({"vector": cosines, "bm25": scores}, scorers=count)


def ours(cosines, scores, terms, strategy=FORMULA):
    return scored(table_of(cosines, scores, terms), strategy)


def theirs(cosines, scores, terms, threshold=0.1):
    """mem0 8d5b786, mem0/utils/scoring.py, without the entity boost."""
    steps = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5), (math.inf, 12.0, 0.5))
    midpoint, steepness = next((middle, slope) for most, middle, slope in steps if terms <= most)
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


def test_a_list_of_huge_negative_scores_breaks_nothing():
    assert ours({"a": 0.6}, {"a": -1e90}, 4) == {"a": pytest.approx(0.3)}


def test_a_wrong_value_shows():
    """Otherwise comparing with the recomputed value proves nothing."""
    parts = Explanation(1.0, "leaf"), Explanation(2.0, "leaf")
    assert recomputed(Explanation(9.0, "s", parts, "sum")) == 3.0


def test_the_inputs_shown_give_the_value_shown():
    """rank r in a list of k = 60 must stand beside 1 / (60 + r)."""
    table = random_table(np.random.default_rng(4))
    plan = compile_plan(table, parse_strategy("rrf(fts, k=60)"))
    for row in np.flatnonzero(~np.isnan(plan.scores())):
        weight, column = plan.explain(int(row)).parts[0].parts
        rank = next(part for part in column.parts if part.text == "rank")
        assert (weight.value, column.value) == (1.0, 1 / (60 + rank.value))


def test_a_hit_is_explained_and_a_stranger_is_not():
    with Vault(":memory:") as vault:
        vault.upsert([Entry("a", text="cache"), Entry("b", text="other")])
        result = Searcher(vault, find_system("fts").config()).search(Query("cache"))

    assert recomputed(result.explain("a")) == result.hits[0].score
    with pytest.raises(ConfigError, match="entry 'b'"):
        result.explain("b")


@tabled
def test_what_the_terms_add_is_the_score(text):
    table = random_table(np.random.default_rng(5), 40)
    plan = compile_plan(table, parse_strategy(text))
    rows = np.flatnonzero(np.isfinite(plan.scores()))
    names, parts = contributions(plan, rows)
    assert len(names) == parts.shape[1]
    np.testing.assert_allclose(parts.sum(axis=1), plan.scores()[rows], rtol=1e-12, atol=1e-12)
