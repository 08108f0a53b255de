"""Labels that cannot carry a ship, and promises that start from what is usual."""

from types import SimpleNamespace

import numpy as np
import pytest
from shared import tabled

import steelyard_eval as sy
from steelyard.config import LISTS
from steelyard_eval.choose.blockers import ContenderScores, _finds, find_blocker
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.recommend import random_only
from steelyard_eval.measures.judgments import condensed
from steelyard_eval.measures.metrics import Judgments, Measure, known_mean

METRIC = Measure("nDCG", 10)


def load(**about):
    return sy.load({"corpus": {"m": "x"}, "queries": {"q": "x"}, "qrels": {"q": ["m"]}, **about}).dataset


def side(label, values, found=0.5, judged=0.5, bare=None, negatives=2.9):
    values = np.asarray(values, dtype=float)
    full = np.full(len(values), 1.0)
    relevant = np.full(len(values), 2)
    return ContenderScores(
        label, None, values, values if bare is None else bare, judged * full, found * full, relevant, negatives
    )


def refused(dataset, current, chosen, finders=(), doubt=0.0):
    found = find_blocker(dataset, METRIC, current, chosen, finders, lambda gain: doubt)
    return found and (found.key, found.facts)


WIDE = np.tile([0.0, 1.0], 10)  # scores of standard deviation 0.5


@tabled
def test_what_labels_cannot_carry(about, sides, doubt, key):
    """With three negatives a list, enough judged entries are not relevant to look at a gain among them."""
    found = refused(load(**about), side("mine", WIDE, **sides), side("other", WIDE, **sides), doubt=doubt)
    assert (found and found[0]) == key


def load_thirty(*batches, **about):
    """Thirty labelled queries, of which the batches say how they were drawn."""
    queries = {f"q{at}": f"question {at}" for at in range(30)}
    return load(queries=queries, qrels={query: ["m"] for query in queries}, provenance=[*batches], **about)


def batch(drawn, pool):
    return {"sampled": "random", "labels": {f"q{at}": ["m"] for at in drawn}, "pool": pool}


class TestLabels:
    @pytest.mark.parametrize("about", [{}, {"sampled": "by hand"}, {"sampled": "failing"}, {"sampled": "duel"}])
    @pytest.mark.parametrize("drawn", [0, 1, 19, 20, 29, 30])
    def test_labels_chosen_by_hand_never_count_as_drawn(self, drawn, about):
        """From twenty drawn queries on these decide, alone; below that all labels do, and nothing ships."""
        full = load_thirty(batch(range(drawn), "complete"), **about)
        part = random_only(full)
        enough = drawn >= 20
        assert len(part.qrels) == (drawn if enough else 30)
        assert len(part.random_queries) == drawn
        sides = side("mine", WIDE), side("other", WIDE)
        assert (refused(part, *sides) is None) == enough
        assert (part is full) == (not enough)
        assert len(part.notices) - len(full.notices) == (enough and drawn < 30)

    def test_a_query_is_drawn_while_its_labels_are_those_of_the_draw(self):
        """Of q1 one drawn label is gone, so what is left may be anybody's; of q2 another one came by hand."""
        batch = {"sampled": "random", "labels": {"q1": ["m", "n"], "q2": ["m"]}}
        corpus, qrels = {"m": "x", "n": "y"}, {"q1": ["m"], "q2": ["m", "n"], "q3": ["n"]}
        data = load(corpus=corpus, queries={q: q for q in qrels}, qrels=qrels, provenance=[batch])
        assert data.sampling_by_query == {"q1": "by hand", "q2": "random", "q3": "by hand"}

    def test_each_pool_has_to_hold_what_the_current_one_finds(self):
        holds, misses = ({"contenders": names, "depth": 10} for names in (["mine", "other"], ["other"]))
        for second, key in ((misses, "pool_misses"), (holds, None)):
            data = load_thirty(batch(range(0, 30, 2), holds), batch(range(1, 30, 2), second))
            found = refused(random_only(data), side("mine", WIDE), side("other", WIDE))
            assert (found and found[0]) == key

    @tabled
    def test_what_is_said_of_labels_and_cannot_be_read_is_a_fault(self, about, word):
        with pytest.raises(sy.DataError, match=word):
            load(**about)

    def test_scores_that_hardly_spread_are_a_trace_only_where_nothing_is_said(self):
        low = side("mine", np.tile([0.0, 0.2], 10))  # 0.1, and the other has 0.5
        key, facts = refused(load(), low, side("other", WIDE))
        assert (key, facts["spread"], facts["wider"]) == ("flat", pytest.approx(0.1), 0.5)
        assert refused(load(sampled="random"), low, side("other", WIDE)) is None

    def test_doubt_is_the_tail_of_students_t(self):
        # Gains 0, .1, .2: mean .1, error .1 / sqrt(3), so t = sqrt(3) = 1.732 of 2 degrees: .1127 by tables.
        zeros = np.zeros((1, 3))
        assert Scored.of(zeros, zeros).p_no_gain(0, np.array([0.0, 0.1, 0.2])) == pytest.approx(0.1127, abs=1e-4)

    def test_labels_that_are_all_in_one_list_are_a_trace_only_where_no_pool_is_stated(self):
        sides, engine = (side("mine", WIDE), side("other", WIDE)), side("engine", WIDE, found=1.0)
        key, facts = refused(load(), *sides, [engine])
        assert (key, facts["count"], facts["finder"]) == ("one_list", 40, "engine")
        assert refused(load(pool="complete"), *sides, [engine]) is None
        assert refused(load(), side("mine", WIDE, found=1.0), sides[1], [engine]) is None

    def test_lists_are_condensed_query_by_query(self):
        judgments = Judgments.of({"a": {"x": 1, "z": 0}, "b": {"y": 2}}, ["a", "b"], ["x", "y", "z"])
        offsets, entry = condensed(np.array([0, 3, 5]), np.array([1, 2, 0, 0, 1]), judgments)
        assert (offsets.tolist(), entry.tolist()) == ([0, 2, 3], [2, 0, 1])

    def test_groups_are_those_that_are_given_or_also_the_proposed_ones(self):
        assert [load().groups, load(groups="given").groups] == ["", "given"]

    def test_judged_entries_of_the_first_places_that_are_not_relevant_are_counted(self):
        graded = {"a": {"x": 1, "y": 0, "z": 0}, "b": {"x": 0, "y": 2}}
        judgments = Judgments.of(graded, ["a", "b"], ["x", "y", "z", "u"])
        offsets, entry = np.array([0, 4, 6]), np.array([0, 1, 3, 2, 3, 0])
        found = ContenderScores.of("mine", None, (offsets, entry), judgments, Measure("nDCG", 3))
        assert found.negatives == pytest.approx(1.0)  # y among the first three of a, x of b
        nothing = ContenderScores.of("none", None, (np.array([0, 4, 4]), entry[:4]), judgments, Measure("nDCG", 3))
        assert (nothing.negatives, known_mean(nothing.judged)) == pytest.approx((0.5, 2 / 3))  # a alone has a list


def test_lists_of_an_engine_find_by_their_names_and_our_own_by_words_or_vectors():
    for system, signals, ways in ((LISTS, {"prod"}, {"prod"}), ("plain", {"bm25", "l0"}, {"words", "vectors"})):
        config = SimpleNamespace(system=system, effective=SimpleNamespace(signals=frozenset(signals)))
        assert _finds("mine", config) == ways
