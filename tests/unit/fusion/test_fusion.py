"""Fusions by hand: every number is derived beside it; mem0's beside a script that follows its scoring.py."""

import math
from math import exp

import numpy as np
import pytest
from shared import beside, tabled, vault_with

from steelyard import Entry, Explanation, Query, Searcher, find_system, fuse, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.fusion import compile_plan
from steelyard.grammar import Duration
from steelyard.signals import PRIORS
from steelyard.stores.base import ScoredId
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
        found.append({name: [ScoredId(*hit, at) for at, hit in enumerate(hits, 1)] for name, hits in best.items()})

    def facts(ids, _):
        return [known.get(id_, Entry(id_)) for id_ in ids]

    return join(asked, [NOW] * len(asked), found, dict(scorers), facts, ends=ends)


def scored(table, strategy, q=0):
    """{id: score} of what a strategy ranks for one query."""
    scores = fuse(table, parse_strategy(str(strategy)))
    rows = range(table.offsets[q], table.offsets[q + 1])
    return {table.entries[table.entry[r]]: scores[r] for r in rows if not np.isnan(scores[r])}


LISTS = beside(__file__)["LISTS"]


@tabled
def test_scores_by_hand(strategy, expected, lists, whole):
    got = scored(tabled_lists(LISTS[lists] if isinstance(lists, str) else lists), strategy)
    assert {id_: got[id_] for id_ in expected} == pytest.approx(expected, abs=1e-15)
    assert not whole or got.keys() == expected.keys()


def test_ranks_and_counts_are_taken_after_the_depth_mask():
    """At depth 1 b leaves fts; its vector rank stays 1."""
    table = tabled_lists({"fts": {"a": 2.0, "b": 1.0}, "vector": {"b": 1.0}}).at_depth({"fts": 1, "vector": 1})
    assert scored(table, "rrf(fts, vector, k=1)") == {"a": 0.5, "b": 0.5}
    table = tabled_lists(LISTS["TIERS"]).at_depth({"fts": 1, "vector": None})
    assert scored(table, "tiered(fts, min_results=2, then=vector)") == {"a": 0.5, "c": 1.0}


class TestNormalisations:
    @tabled
    def test_a_list_of_4_2_1(self, name, expected):
        table = tabled_lists({"fts": {"a": 4.0, "b": 2.0, "c": 1.0}, "vector": {"d": 1.0}})
        got = scored(table, f"weighted_sum(1*fts, 0*vector, normalize={name})")
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


@tabled
def test_each_query_has_its_own_scale_tier_and_steps(strategy, lists, expected):
    queries = [Query("t", id=f"q{at}", intent=["fix", "", "odd"][at]) for at in range(len(lists))]
    table = tabled_lists(*lists, queries=queries)
    assert [scored(table, strategy, q) for q in range(len(lists))] == [pytest.approx(own) for own in expected]


@tabled
def test_a_tier_needs_the_next_one_where_it_is_too_short(strategy, lists, needs):
    found = parse_strategy(strategy).needs(tabled_lists(*lists), [*needs])
    assert {name: asked.tolist() for name, asked in found.items()} == needs


@tabled
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


def test_a_thousand_random_inputs_score_as_in_mem0():
    rng, ids = np.random.default_rng(37), [f"m{at}" for at in range(12)]
    for _ in range(1000):
        near, worded = (rng.choice(ids, size=rng.integers(0, 9), replace=False) for _ in range(2))
        cosines = {i: float(np.round(rng.uniform(-0.3, 1.0), 2)) for i in near}
        scores, terms = {i: float(rng.uniform(0.1, 30)) for i in worded}, int(rng.integers(0, 20))
        assert ours(cosines, scores, terms) == pytest.approx(theirs(cosines, scores, terms), abs=1e-12)


@tabled
def test_gates_by_hand(strategy, cosines, scores, terms, expected):
    assert ours(cosines, scores, terms, parse_strategy(strategy)) == pytest.approx(expected, rel=1e-12)


def test_the_explanation_adds_up_and_names_the_sigmoid():
    table = table_of({"a": 0.6}, {"a": 7.0}, 4)
    found = compile_plan(table, FORMULA).explain(0)
    assert recomputed(found) == fuse(table, FORMULA)[0]
    for part in ("midpoint", "steepness", "terms", "of at least 0.1"):
        assert part in str(found)


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


def test_what_stands_for_what_is_missing_is_shown():
    table = tabled_lists({"l0": {"a": 0.5, "b": 0.5}, "l1": {"b": 0.5}, "l2": {"b": 0.5}, "unindexed": {"a": 1.0}})
    plan = compile_plan(table, parse_strategy("layered(1*l0, 1*l1, 1*l2, threshold=0.1, lacking=estimate)"))
    assert all(f in str(plan.explain(0)).replace(" ", "") for f in ("else0.8*l0", "else0.4*l0+0.6*l1"))
    plan = compile_plan(tabled_lists({"fts": {}, "bm25": {"a": 2.0}}), parse_strategy("comb_sum(fts, bm25)"))
    ends = plan.explain(0).parts[0].parts[1].parts
    assert {part.text: part.value for part in ends} == {"min": 0.0, "max": 0.0}


def test_a_hit_is_explained_and_a_stranger_is_not():
    with vault_with(Entry("a", text="cache"), Entry("b", text="other")) as vault:
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


RANX = beside(__file__, "ranx.json")


@pytest.mark.parametrize("text", RANX["cases"])
def test_scores_are_those_of_ranx(text):
    """Under every normalisation that both have, as they were recorded."""
    table = tabled_lists(*RANX["queries"].values())
    names = (f"1*{name}" if text.startswith("weighted_sum") else name for name in ("bm25", "fts", "vector"))
    strategy = text.format(", ".join(names))
    for at, theirs in enumerate(RANX["cases"][text]["scores"].values()):
        assert len(theirs) > 4
        assert scored(table, strategy, at) == pytest.approx(theirs, rel=1e-12, abs=1e-12)
