"""Queries that vary together or ask nearly the same have one unit; starter tells every signal apart."""

import dataclasses
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.sparse.csgraph import connected_components
from shared import ROOT, beside, tabled

import steelyard_eval as sy
from steelyard.memory.query import Query
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import groups as grouping
from steelyard_eval.datasets.groups import COSINE, COSINE_SAME, alike, judged, normalised_text, unit_numbers
from steelyard_eval.recording.record import record


class TestUnits:
    def test_a_group_called_like_a_query_or_a_text_is_neither(self):
        named = [("a", "q1", ""), ("b", "q2", "q1"), ("c", "q3", "a"), ("d", "q4", "query q1")]
        queries = [Query(text, id=id_, group=group) for text, id_, group in named]
        assert unit_numbers(queries).tolist() == [0, 1, 2, 3]

    def test_a_text_that_stands_in_two_groups_joins_them(self):
        # x and y are joined by the text "same", y and z by the group of "other"; "alone" stays apart.
        texts = ["one", "alone", "Same?", "same", "other", "OTHER!", "two"]
        asked = zip(texts, ["x", "", "x", "y", "y", "z", "z"], strict=True)
        queries = [Query(text, id=str(at), group=group) for at, (text, group) in enumerate(asked)]
        assert unit_numbers(queries).tolist() == [0, 1, 0, 0, 0, 0, 0]

    @tabled
    def test_the_same_question_in_another_dress(self, one, other):
        assert normalised_text(one) == normalised_text(other)

    @tabled
    def test_different_questions(self, one, other):
        assert normalised_text(one) != normalised_text(other)


PAIRS = ROOT / "tests" / "data" / "paraphrases.jsonl"
TABLES = beside(__file__)


def proposed(row):
    """Whether a pair is proposed, from its texts and its recorded cosine alone: of two vectors in the plane."""
    vectors = np.array([[1.0, 0.0], [row["cosine"], np.sqrt(1 - row["cosine"] ** 2)]])
    dataset = sy.load({"e": "x"}, {"one": row["one"], "other": row["other"]}, {"one": ["e"]}).dataset
    dataset = dataclasses.replace(dataset, query_vectors={"minilm": vectors}, qrels={})
    return len(set(alike(dataset, dataset.queries).tolist())) == 1


class TestProposals:
    def test_six_of_seven_proposals_are_paraphrases_and_most_paraphrases_are_proposed(self):
        known = [json.loads(line) for line in PAIRS.read_text().splitlines()]
        same = np.array([row["same"] for row in known])
        found = np.array([proposed(row) for row in known])
        assert found[same].mean() >= 0.8
        assert same[found].mean() >= 0.85

    @given(st.integers(0, 2**32 - 1), st.integers(2, 150))
    def test_units_are_the_components_of_what_is_close(self, seed, size):
        rng = np.random.default_rng(seed)
        vectors, unit = rng.standard_normal((size, 3)), np.sort(rng.integers(0, size, size))
        numbers, answers = rng.integers(0, 2, size), rng.integers(0, 3, size)
        unitary = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        least = np.where(answers[:, None] == answers, COSINE_SAME, COSINE)
        near = (unitary @ unitary.T >= least) & (numbers[:, None] == numbers) | (unit[:, None] == unit)
        expected = connected_components(near)[1]
        found = grouping.merged(unit, numbers, answers, grouping.by_vectors(vectors), (COSINE, COSINE_SAME))
        assert ((found[:, None] == found) == (expected[:, None] == expected)).all()

    def test_a_retyped_query_is_found_without_vectors_and_one_on_another_number_is_not(self):
        # 34 letters, so 32 runs of three each; a changed letter changes three: (32 - 3) / (32 + 3) = .83.
        texts = ["where did we store the signing certificate", "where did we store the signing certifikate"]
        other = [f"what did we decide on the second of march {year}" for year in (2023, 2024)]
        assert grouping.SHARED < 29 / 35
        dataset = sy.load({"e": "x"}, dict(zip("abcd", texts + other, strict=True)), {"a": ["e"]}).dataset
        assert alike(dataset, dataset.queries).tolist() == [0, 0, 1, 2]
        assert [one.group for one in grouping.with_proposed(dataset, dataset.queries)] == [
            grouping.PROPOSED + "a"
        ] * 2 + [""] * 2

    def test_memory_is_not_that_of_all_pairs(self):
        size = 4000  # all pairs are 64 MB in float32
        vectors = np.random.default_rng(0).standard_normal((size, 16))
        tracemalloc.start()
        grouping.merged(
            np.arange(size), np.zeros(size), np.arange(size), grouping.by_vectors(vectors), (COSINE, COSINE_SAME)
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10e6

    def test_eight_questions_in_five_wordings_are_eight_until_that_is_refused(self):
        """They have no recorded vector, and no two wordings are near by themselves."""
        asked = [text for wordings in TABLES["wordings"] for text in wordings]
        texts = {f"q{at}": text for at, text in enumerate(asked)}
        qrels = {name: [f"e{at // 5}"] for at, name in enumerate(texts)}
        repeated = sy.load({f"e{at}": "x" for at in range(8)}, texts, qrels).dataset
        queries = judged(repeated, repeated.queries)
        assert unit_numbers(queries).tolist() == np.repeat(np.arange(8), 5).tolist()
        assert grouping.questions(queries) == 8
        assert len(set(alike(dataclasses.replace(repeated, qrels={}), repeated.queries).tolist())) == 40
        refused = judged(dataclasses.replace(repeated, groups="given"), repeated.queries)
        assert (grouping.questions(refused), refused) == (40, repeated.queries)
        own = dataclasses.replace(repeated.queries[0], group="mine")  # what is given stays
        assert unit_numbers(judged(repeated, [own, *repeated.queries[1:]])).tolist()[:2] == [0, 1]


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_signal_of_any_system_is_constant(data, system):
    workspace = data.workspace
    config = SYSTEMS[system].config(10, workspace.model, {})
    strategy, table = config.effective, record(workspace, workspace.dataset.split("all"), [config])
    used = strategy.signals - {"unindexed", "one"}  # the files of folders, of which this set has none; and 1
    derived = {name: PRIORS[name](table, {}).values for name in used & PRIORS.keys()}
    values = derived | {name: table.column(name) for name in used - PRIORS.keys()}
    assert values
    assert [name for name, own in values.items() if np.nanmin(own) == np.nanmax(own)] == []


def test_of_equal_entries_all_but_one_repeat():
    assert grouping.duplicates_in_words([["a", "b", "c"], ["d", "e"]]).startswith("3 entries repeat")
