"""Fusions by hand: every expected number is derived beside it."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.fusion import compile_plan, fuse, parse_strategy
from steelyard.grammar import Duration
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.signals import PRIORS
from steelyard.stores.base import Found
from steelyard.table.join import join
from steelyard.testing import random_table

DAY = 86_400.0
NOW = 1_795_305_600.0
TM2C2 = "weighted_sum(0.2*bm25, 0.8*vector, normalize=tmm)"


def tabled(*lists, entries=(), queries=None, ends=()):
    """A table of one query for each dict of lists, written as {retriever: {id: score}}."""
    known = {entry.id: entry for entry in entries}
    asked = queries or [Query("t", id=f"q{at}") for at in range(len(lists))]
    found = [
        {
            name: [
                Found(id_, score, place)
                for place, (id_, score) in enumerate(sorted(scores.items(), key=lambda s: (-s[1], s[0])), 1)
            ]
            for name, scores in own.items()
        }
        for own in lists
    ]
    facts = lambda ids, _: [known.get(id_, Entry(id_)) for id_ in ids]  # noqa: E731 -- one line
    return join(asked, [NOW] * len(asked), found, {}, facts, ends=ends)


def scored(table, strategy, q=0):
    """{id: score} of what a strategy ranks for one query."""
    scores = fuse(table, parse_strategy(strategy))
    rows = range(table.offsets[q], table.offsets[q + 1])
    return {table.entries[table.entry[r]]: scores[r] for r in rows if not np.isnan(scores[r])}


def prior(name, entry, query=None, **options):
    """The value of a derived signal for one pair."""
    table = tabled({"fts": {entry.id: 1.0}}, entries=[entry], queries=[query or Query("t", id="q")])
    return PRIORS[name](table, options).values[0]


class TestRrf:
    # x is second of the vectors, fifth of bm25 and first of a list of weight 1.5 (fts stands for the graph).
    WORKED = {  # noqa: RUF012 -- constant
        "vector": {"a": 9.0, "x": 8.0},
        "bm25": {"b": 9.0, "c": 8.0, "d": 7.0, "e": 6.0, "x": 5.0},
        "fts": {"x": 1.0},
    }

    def test_the_worked_example_of_spec_kit(self):
        """1/62 + 1/65 + 1.5/61 = 0.016129 + 0.015385 + 0.024590 = 0.056104; times 1.10 = 0.061714."""
        table = tabled(self.WORKED)
        plain = scored(table, "rrf(vector, bm25, 1.5*fts, k=60)")["x"]
        boosted = scored(table, "rrf(vector, bm25, 1.5*fts, k=60, bonus=times(0.1))")["x"]

        assert round(plain, 4) == 0.0561
        assert plain == pytest.approx(1 / 62 + 1 / 65 + 1.5 / 61, abs=1e-15)
        assert round(boosted, 4) == 0.0617

    def test_a_bonus_is_for_entries_of_two_lists_or_more(self):
        """a stands in one list: 1/61 whatever the bonus; x in three: once adds 0.1, each adds 0.2."""
        table = tabled(self.WORKED)
        plain = scored(table, "rrf(vector, bm25, fts, k=60)")["x"]
        for bonus, expected in (
            ("times(0.5)", plain * 1.5),
            ("once(0.1)", plain + 0.1),
            ("each(0.1)", plain + 0.2),
        ):
            got = scored(table, f"rrf(vector, bm25, fts, k=60, bonus={bonus})")
            assert got["x"] == pytest.approx(expected, abs=1e-15)
            assert got["a"] == pytest.approx(1 / 61, abs=1e-15)

    def test_absence_is_not_the_last_rank(self):
        table = tabled({"fts": {"a": 1.0}, "vector": {"b": 1.0}})
        assert scored(table, "rrf(fts, vector, k=1)") == {"a": 0.5, "b": 0.5}

    def test_a_score_of_zero_is_presence(self):
        table = tabled({"fts": {"a": 0.0}, "vector": {"a": 0.0, "b": -1.0}})
        assert scored(table, "rrf(fts, vector, k=1)") == {"a": 1.0, "b": pytest.approx(1 / 3)}

    def test_each_list_may_have_its_own_k(self):
        """x is second of the vectors and fifth of bm25: 1 / (1 + 2) + 2 / (60 + 5)."""
        got = scored(tabled(self.WORKED), "rrf(vector, 2*bm25, k=[1, 60])")
        assert got["x"] == pytest.approx(1 / 3 + 2 / 65, abs=1e-15)
        assert got["a"] == pytest.approx(1 / 2, abs=1e-15)

    def test_a_list_that_cannot_be_fetched_takes_its_k_along(self):
        three = parse_strategy("rrf(vector, bm25, fts, k=[1, 2, 3])")
        assert str(three.without({"bm25"})) == "rrf(vector, fts, k=[1, 3])"
        assert str(three.without({"bm25", "vector"})) == "rrf(fts, k=3)"

    def test_ranks_are_taken_after_the_depth_mask(self):
        """At depth 1 b leaves fts; its vector rank stays 1."""
        table = tabled({"fts": {"a": 2.0, "b": 1.0}, "vector": {"b": 1.0}}).at_depth({"fts": 1, "vector": 1})
        assert scored(table, "rrf(fts, vector, k=1)") == {"a": 0.5, "b": 0.5}


class TestNormalisations:
    LISTS = {"fts": {"a": 4.0, "b": 2.0, "c": 1.0}, "vector": {"d": 1.0}}  # noqa: RUF012 -- never changed

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
        got = scored(tabled(self.LISTS), f"weighted_sum(1*fts, 0*vector, normalize={name})")

        assert [got[id_] for id_ in "abc"] == pytest.approx(expected, abs=1e-15)
        assert got["d"] == 0.0

    @pytest.mark.parametrize(("name", "value"), [("max", 1.0), ("minmax", 1.0), ("zscore", 0.0), ("dbsf", 0.5)])
    @pytest.mark.parametrize("score", [0.1, 0.7, 1e-300, 12345.678])
    def test_a_list_of_equal_values(self, name, value, score):
        """0.1 + 0.1 + 0.1 is not 3 * 0.1, so a mean may lie beside the values; they are equal all the same."""
        table = tabled({"fts": dict.fromkeys("abc", score)})
        assert set(scored(table, f"weighted_sum(1*fts, normalize={name})").values()) == {value}

    def test_the_only_value_of_a_list_has_rank_one(self):
        assert scored(tabled({"vector": {"d": 0.3}}), "weighted_sum(1*vector, normalize=rank)") == {"d": 1.0}

    def test_equal_values_rank_by_id(self):
        table = tabled({"fts": dict.fromkeys("abc", 0.1)})
        assert scored(table, "weighted_sum(1*fts, normalize=rank)") == {"a": 1.0, "b": 2 / 3, "c": 1 / 3}

    @pytest.mark.parametrize("top", [0.0, -0.5])
    def test_a_list_whose_maximum_is_not_positive_contributes_0(self, top):
        table = tabled({"fts": {"a": 2.0}, "vector": {"a": top, "b": top - 1}})
        assert scored(table, "weighted_sum(0.3*fts, 0.7*vector, normalize=max)") == {"a": 0.3, "b": 0.0}

    def test_scales_are_those_of_each_query(self):
        table = tabled({"fts": {"a": 4.0, "b": 2.0}}, {"fts": {"a": 10.0, "b": 1.0}})

        assert scored(table, "weighted_sum(1*fts, normalize=max)", 0)["b"] == 0.5
        assert scored(table, "weighted_sum(1*fts, normalize=max)", 1)["b"] == 0.1


def test_tm2c2_is_the_convex_combination_of_bruch_gai_and_ingber():
    """By numpy alone: 0.2 x bm25 / max + 0.8 x (cosine + 1) / (max + 1), and 0 for what a list does not hold."""
    rng = np.random.default_rng(7)
    bm25, cosine = rng.gamma(2.0, 4.0, 40), rng.uniform(-1.0, 1.0, 40)
    has_words, is_near = rng.random((2, 40)) < 0.7
    lists = {
        "bm25": {f"e{at}": bm25[at] for at in np.flatnonzero(has_words)},
        "vector": {f"e{at}": cosine[at] for at in np.flatnonzero(is_near)},
    }
    got = scored(tabled(lists, ends=[{"bm25": (0.0, 99.0), "vector": (-1.0, 1.0)}]), TM2C2)

    expected = 0.2 * np.where(has_words, bm25 / bm25[has_words].max(), 0.0)
    expected += 0.8 * np.where(is_near, (cosine + 1) / (cosine[is_near].max() + 1), 0.0)
    assert got == {f"e{at}": pytest.approx(expected[at], abs=1e-12) for at in np.flatnonzero(has_words | is_near)}


class TestTiered:
    LISTS = ({"fts": {"a": 3.0, "b": 2.0}, "vector": {"a": 0.5, "c": 1.0}},)

    def test_enough_results_answer_alone(self):
        assert scored(tabled(*self.LISTS), "tiered(fts, min_results=2, then=vector)") == {"a": 3.0, "b": 2.0}

    def test_too_few_hand_over_to_the_second_tier(self):
        assert scored(tabled(*self.LISTS), "tiered(fts, min_results=3, then=vector)") == {"a": 0.5, "c": 1.0}

    def test_counts_are_taken_after_the_depth_mask(self):
        table = tabled(*self.LISTS).at_depth({"fts": 1, "vector": None})
        assert scored(table, "tiered(fts, min_results=2, then=vector)") == {"a": 0.5, "c": 1.0}

    def test_each_query_is_answered_by_its_own_tier(self):
        table = tabled(*self.LISTS, {"fts": {"a": 3.0}, "vector": {"z": 1.0}}, {"fts": {}, "vector": {"y": 0.2}})
        strategy = "tiered(fts, min_results=2, then=vector)"

        assert [scored(table, strategy, q) for q in range(3)] == [{"a": 3.0, "b": 2.0}, {"z": 1.0}, {"y": 0.2}]

    def test_only_queries_left_short_need_the_second_tier(self):
        table = tabled(*self.LISTS, {"fts": {}, "vector": {"z": 1.0}})
        needs = parse_strategy("tiered(fts, min_results=2, then=vector)").needs(table, ["fts", "vector"])

        assert {name: asked.tolist() for name, asked in needs.items()} == {
            "fts": [True, True],
            "vector": [False, True],
        }

    def test_a_tier_inside_a_sum_is_as_lazy(self):
        """The sum needs its tiers' signals only where they do."""
        strategy = parse_strategy("weighted_sum(1*tiered(fts, min_results=2, then=vector), 0.1*tfidf)")
        needs = strategy.needs(tabled({"fts": {"a": 1.0, "b": 2.0}}, {"fts": {"a": 1.0}}), ["fts", "vector"])

        assert {n: asked.tolist() for n, asked in needs.items() if asked.any()} == {
            "fts": [True, True],
            "tfidf": [True, True],
            "vector": [False, True],
        }

    def test_scorers_alone_need_the_retrievers_that_are_named_and_no_others_afterwards(self):
        table = tabled({"tfidf": {"a": 1.0}})
        strategy = parse_strategy("weighted_sum(0.5*tfidf, 0.5*severity)")

        assert strategy.needs(table, ["fts", "vector"]).keys() == {"fts", "tfidf", "vector"}
        assert strategy.needs(table, []).keys() == {"tfidf"}

    def test_an_inner_tier_that_was_not_needed_does_not_stop_the_outer_one(self):
        """fts is enough for the inner tier and too little for the outer: bm25 must be asked for."""
        strategy = parse_strategy("tiered(tiered(fts, min_results=1, then=vector), min_results=3, then=bm25)")
        table = tabled({"fts": {"a": 1.0, "b": 2.0}})
        needs = strategy.needs(table, ["fts", "vector", "bm25"])
        assert {name: bool(asked[0]) for name, asked in needs.items()} == {
            "fts": True,
            "vector": False,
            "bm25": True,
        }

        table = tabled({"fts": {"a": 1.0, "b": 2.0}, "bm25": {"c": 5.0}})
        assert scored(table, str(strategy)) == {"c": 5.0}

    def test_a_signal_that_a_query_needs_and_the_table_lacks_is_an_error(self):
        with pytest.raises(ConfigError, match=r"signal 'vector'"):
            fuse(tabled({"fts": {"a": 1.0}}), parse_strategy("tiered(fts, min_results=2, then=vector)"))
        with pytest.raises(ConfigError, match="signal 'cosine'"):
            fuse(tabled({"fts": {"a": 1.0}}), parse_strategy("weighted_sum(1*fts, 1*cosine)"))


class TestLayered:
    STRATEGY = "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])"

    @pytest.mark.parametrize(
        ("best", "ranked"),
        [
            (0.9, {"a": 0.2 * 0.9 + 0.3 * 0.6 + 0.5 * 0.2}),  # passes 0.5
            (0.5, {"a": 0.2 * 0.5 + 0.3 * 0.6 + 0.5 * 0.2}),  # the threshold itself passes
            (0.45, {"a": 0.2 * 0.45 + 0.3 * 0.6 + 0.5 * 0.2}),  # relaxed to 0.4
            (0.35, {"a": 0.2 * 0.35 + 0.3 * 0.6 + 0.5 * 0.2}),  # relaxed to 0.3
            (0.29, {"a": 0.2, "b": 0.8}),  # the last layer alone
        ],
    )
    def test_the_ladder_goes_down_until_something_passes(self, best, ranked):
        lists = {"l0": {"a": best, "b": 0.1}, "l1": {"a": 0.6}, "l2": {"a": 0.2, "b": 0.8}}
        assert scored(tabled(lists), self.STRATEGY) == pytest.approx(ranked, abs=1e-15)

    def test_a_layer_that_an_entry_lacks_adds_0(self):
        lists = {"l0": {"a": 0.9, "b": 0.8}, "l1": {"a": 0.6}, "l2": {"b": 0.5}}
        assert scored(tabled(lists), self.STRATEGY) == pytest.approx({"a": 0.36, "b": 0.41}, abs=1e-15)

    def test_an_entry_without_the_first_layer_does_not_pass(self):
        lists = {"l0": {"a": 0.9}, "l1": {"b": 1.0}, "l2": {"a": 0.1, "b": 1.0}}
        assert scored(tabled(lists), self.STRATEGY).keys() == {"a"}

    def test_relaxation_starts_below_an_explicit_threshold(self):
        """From 0.35 the next step is 0.3, never up to 0.4."""
        lists = {"l0": {"a": 0.32, "b": 0.3}, "l1": {}, "l2": {"a": 0.5}}
        strategy = "layered(1*l0, 1*l1, 1*l2, threshold=0.35, relax=[0.4, 0.3])"
        assert scored(tabled(lists), strategy) == pytest.approx({"a": 0.82, "b": 0.3})

    def test_each_query_relaxes_by_itself(self):
        table = tabled({"l0": {"a": 0.9}, "l1": {}, "l2": {}}, {"l0": {"a": 0.1}, "l1": {}, "l2": {"b": 0.7}})

        assert scored(table, self.STRATEGY, 0) == pytest.approx({"a": 0.18})
        assert scored(table, self.STRATEGY, 1) == {"b": 0.7}

    def test_a_layer_keeps_its_scale_inside_another_fusion(self):
        """0.9, 0.8, 0.2 become 1, 6/7, 0; were they scaled anew after the gate, b would fall to 0."""
        lists = {"l0": {"a": 0.9, "b": 0.8, "c": 0.2}}
        inner = "layered(1*weighted_sum(1*l0, normalize=minmax), threshold=0.5)"

        for strategy in (inner, f"weighted_sum(1*{inner})", f"tiered({inner}, min_results=2, then=fts)"):
            assert scored(tabled(lists), strategy) == pytest.approx({"a": 1.0, "b": 6 / 7})

    def test_what_did_not_pass_does_not_count_for_a_tier(self):
        """One of three entries passes the gate: too few for min_results=2."""
        lists = {"l0": {"a": 0.9, "b": 0.1, "c": 0.1}, "fts": {"z": 1.0}}
        assert scored(tabled(lists), "tiered(layered(1*l0), min_results=2, then=fts)") == {"z": 1.0}


class TestByIntent:
    def test_each_query_follows_its_intent(self):
        lists = {"fts": {"a": 1.0}, "vector": {"b": 2.0}}
        queries = [Query("t", id=f"q{at}", intent=intent) for at, intent in enumerate(["fix", "", "odd"])]
        table = tabled(lists, lists, lists, queries=queries)

        assert [scored(table, "by_intent(default=fts, fix=vector)", q) for q in range(3)] == [
            {"b": 2.0},
            {"a": 1.0},
            {"a": 1.0},
        ]


class TestMembership:
    LISTS = ({"fts": {"a": 1.0}, "vector": {"b": 1.0}},)

    def test_priors_score_what_retrievers_found(self):
        assert scored(tabled(*self.LISTS), "weighted_sum(1*fts, 1*importance)") == {"a": 1.5}

    def test_priors_alone_rank_every_candidate(self):
        assert scored(tabled(*self.LISTS), "importance") == {"a": 0.5, "b": 0.5}


class TestWithout:
    @pytest.mark.parametrize(
        ("strategy", "left"),
        [
            ("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))", "fts"),
            ("rrf(vector, fts, 1.5*bm25)", "rrf(fts, 1.5*bm25, k=60)"),
            ("weighted_sum(0.5*vector, 0.5*cosine)", None),
            ("by_intent(default=fts, fix=vector)", "by_intent(default=fts)"),
            ("by_intent(default=vector, fix=fts)", None),
            ("layered(0.2*l0, 0.8*l2)", None),
            ("tiered(vector, then=fts)", "fts"),
        ],
    )
    def test_what_is_left_of_a_strategy_without_vectors(self, strategy, left):
        rest = parse_strategy(strategy).without({"vector", "cosine", "l0", "l1", "l2"})
        assert (rest if rest is None else str(rest)) == left


class TestSignals:
    @pytest.mark.parametrize(("days", "value"), [(0, 1.0), (365, 0.5), (730, 0.25), (-5, 1.0)])
    def test_recency_halves_every_half_life(self, days, value):
        entry = Entry("a", created_at=NOW - days * DAY)
        assert prior("recency", entry, half_life=Duration(365, "d")) == pytest.approx(value, abs=1e-15)

    def test_recency_runs_from_the_last_update(self):
        entry = Entry("a", created_at=NOW - 999 * DAY, updated_at=NOW - 69 * 3600)
        assert prior("recency", entry, half_life=Duration(69, "h")) == pytest.approx(0.5, abs=1e-15)

    def test_an_undated_entry_counts_as_new(self):
        assert prior("recency", Entry("a"), half_life=Duration(1, "h")) == 1.0

    @pytest.mark.parametrize(
        ("label", "value"),
        [("critical", 1.0), ("warning", 0.7), ("suggestion", 0.4), ("", 0.4), ("Critical", 0.4)],
    )
    def test_severity(self, label, value):
        assert prior("severity", Entry("a", severity=label)) == value

    @pytest.mark.parametrize(("stated", "value"), [(10.0, 1.0), (7.0, 0.7), (1.0, 0.1), (None, 0.5)])
    def test_importance(self, stated, value):
        assert prior("importance", Entry("a", importance=stated)) == value

    @pytest.mark.parametrize(
        ("asked", "held", "value"),
        [
            ("a b", "b c", 1 / 3),  # {b} of {a, b, c}
            ("a b", "a b", 1.0),
            ("a", "b", 0.0),
            ("a a", "a", 1.0),  # sets
            ("", "a", 0.0),
            ("a", "", 0.0),
            ("", "", 0.0),
            ("A", "a", 0.0),  # case counts
        ],
    )
    def test_tags_overlap_by_jaccard(self, asked, held, value):
        query = Query("t", id="q", tags=tuple(asked.split()))
        assert prior("tags", Entry("a", tags=tuple(held.split())), query) == value

    @pytest.mark.parametrize(("asked", "held", "value"), [("x", "x", 1.0), ("x", "y", 0.0), ("", "", 0.0)])
    def test_domain_matches_only_when_asked_for(self, asked, held, value):
        assert prior("domain", Entry("a", domain=held), Query("t", id="q", domain=asked)) == value


def test_a_plan_is_not_moved_by_columns_it_does_not_read():
    table = random_table(np.random.default_rng(0))
    strategy = parse_strategy("rrf(fts, vector)")
    fewer = replace(table, columns={name: table.columns[name] for name in ("fts", "vector")})

    assert compile_plan(table, strategy).scores().tobytes() == compile_plan(fewer, strategy).scores().tobytes()
