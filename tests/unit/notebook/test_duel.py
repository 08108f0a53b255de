"""Judging by duel: which pair is next, what the judged ones show, when the verdict stands, what is kept."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard_eval as sy
from steelyard.memory.query import Query
from steelyard_eval.choose.duel import MIN_PAIRS, PairSelection, fitted, gains_of, pairwise_estimate, sigmoid
from steelyard_eval.choose.public import features, reciprocal
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.notebook.label.desk import labelling_state
from steelyard_eval.notebook.label.open import DuelSession, open_judging


def duel(relevance, worth, query, known=None):
    """A contest whose model says these probabilities: one column a pair, which nothing bends much."""
    logit = np.log(np.array(relevance) / (1 - np.array(relevance)))
    features = np.column_stack([logit, np.zeros(len(logit))])
    none = np.full(len(worth), np.nan) if known is None else np.array(known)
    return PairSelection(np.array(worth, dtype=float), np.array(query), features, np.array([1.0, 0.0]), none)


def test_expected_ndcg_has_probabilities_in_the_place_of_labels_that_are_missing():
    # One query of two entries, .8 and .2; the first contender ranks them 1, 2 and the other one 2, 1.
    second = 1 / np.log2(3)
    made = duel([0.8, 0.2], [[1, second], [second, 1]], [0, 0])
    best = 0.8 + 0.2 * second
    found = made.standing(np.full(2, np.nan)).means
    assert found == pytest.approx([1.0, (0.8 * second + 0.2) / best])
    assert made.standing(np.array([0.0, 1.0])).relevance.tolist() == [0, 1]
    assert made.standing(np.array([0.0, 1.0])).leaders[0] == 1


def test_features_of_a_pair_are_its_places_and_the_contenders_that_have_it():
    """Two contenders: both have the first pair, one has the second at rank 3 (1 / log2(4)), none has the third."""
    places = {
        "bm25": np.array([0.5, 0.0, 0.0]),
        "fts": np.array([0.25, 0.0, 0.0]),
        "vector": np.array([0.5, 0.2, 0.0]),
    }
    found = features(places, np.array([[1.0, 0.5, 0.0], [0.5, 0.0, 0.0]]))
    assert found.tolist() == [
        [1, 0.5, 0.25, 0.5, 0.25, 1, 1, 1, 1.0, 0.75],
        [1, 0.0, 0.0, 0.2, 0.0, 0, 1, 0, 0.5, 0.25],
        [1, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0.0, 0.0],
    ]


def test_public_means_count_as_a_hundred_pairs():
    # Both rank alike, so labels tell nothing; they were .1 apart elsewhere: without a judged pair that stands.
    made = duel([0.5, 0.5], [[1, 0.63], [1, 0.63]], [0, 0], known=[0.4, 0.5])
    one, other = made.standing(np.full(2, np.nan)).means
    assert other - one == pytest.approx(0.1)
    one, other = made.standing(np.array([1.0, np.nan])).means
    assert other - one == pytest.approx(0.1 * 100 / 101)


def test_the_next_pair_is_where_leaders_part_and_relevance_is_in_doubt():
    # The pairs: placed alike; parting and doubtful; parting and all but sure.
    worth = [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    made = duel([0.5, 0.5, 0.001], worth, [0, 1, 2])
    standing = made.standing(np.full(3, np.nan))
    assert next(standing.order()) == 1
    assert next(standing.order({1})) == 2
    assert not list(made.standing(np.array([1.0, 1.0, 0.0])).order())


def test_the_error_of_a_lead_is_that_of_independent_labels():
    # One pair a query, probability 1/2, placed first by one contender and not found by the other; the ideal of a
    # query is its relevance of 1/2, so its label moves nDCG by 1/(1/2) with a deviation of 1/2: 1 a query of four.
    made = duel([0.5] * 4, [[1] * 4, [0] * 4], range(4))
    assert made.standing(np.full(4, np.nan)).error == pytest.approx(np.sqrt(4) * 1 / 4)


def test_the_verdict_stands_after_enough_pairs_that_leave_little_open():
    pairs = MIN_PAIRS + 20
    worth = np.zeros((2, pairs))
    worth[0] = 1.0
    made = duel([0.5] * pairs, worth, range(pairs))
    seen = np.full(pairs, np.nan)
    seen[: MIN_PAIRS - 1] = 1.0
    assert not made.standing(seen).is_settled
    assert made.standing(seen).more >= 1
    seen[:] = 1.0
    assert made.standing(seen).is_settled
    assert made.standing(seen).more == 0


def test_the_model_is_bent_by_labels_and_held_by_the_prior():
    x = np.array([[1.0], [1.0], [1.0]])
    free, held = (fitted(x, np.array([1.0, 1.0, 0.0]), np.zeros(1), stiff) for stiff in (100.0, 0.01))
    assert sigmoid(free)[0] == pytest.approx(2 / 3, abs=1e-3)  # the share of ones
    assert abs(held[0]) < 1e-3
    sure = fitted(np.ones((1000, 1)), (np.arange(1000) > 0).astype(float), np.zeros(1), 1e4)
    assert sigmoid(sure)[0] == pytest.approx(0.999, abs=1e-6)


def test_pairs_are_those_of_any_list_by_query_and_id():
    asked = [Query(name, id=name) for name in "pq"]
    bare = replace(sy.load(starter()).dataset, qrels={})
    found = pairwise_estimate({"a": [["y", "x"], ["z"]], "b": [["x"], []]}, asked, bare, "minilm").contest
    assert found.query.tolist() == [0, 0, 1]
    assert found.discount == pytest.approx(np.array([[1 / np.log2(3), 1, 1], [1, 0, 0]]))
    assert reciprocal(found.discount) == pytest.approx(np.array([[1 / 3, 1 / 2, 1 / 2], [1 / 2, 0, 0]]))


def test_grades_are_shares_of_the_highest():
    none = replace(sy.load(starter()).dataset, qrels={"x": {"y": 0}})
    asked = [Query("p", id="p")]

    def shares(*grades):
        return gains_of(np.array(grades), np.zeros(len(grades), dtype=int), asked, none).tolist()

    assert shares(-1, 0, 3) == [pytest.approx(np.nan, nan_ok=True), 0, 1]
    assert shares(2, 4) == [0.5, 1]


def opened(few, data, folder, *judges):
    """A duel over a smaller set."""
    space = replace(data.workspace, dataset=few)
    return open_judging(few, None, folder, *judges, random=False, workspace=lambda: space)


@pytest.fixture
def session(data, tmp_path):
    return opened(replace(data.dataset, qrels={}, queries=data.dataset.queries[:8]), data, tmp_path)


def test_an_answer_is_kept_skipped_or_left_open_and_taken_back(session):
    first = session.next
    session.give(2, "why", first)
    second = session.next
    session.give(None, pair=second)
    third = session.next
    session.leave(third[0])
    assert len({first, second, third, session.next}) == 4
    assert [one.grade for one in session.given.values()] == [2, None]
    assert len(session.qrels.read_text().splitlines()) == 1  # who cannot say gives no label
    assert session.standing.judged.sum() == 1
    assert session.standing is session.standing  # computed once for the same grades
    assert [session.undo()[0].grade, session.undo()[0].grade] == [None, 2]
    assert session.next == first
    with pytest.raises(sy.ConfigError, match="7 is none"):
        session.give(7)


def test_the_second_judge_of_a_duel_sees_all_that_the_first_one_judged(session, data):
    while len(session.given) < 12:
        session.give(1)
    second = opened(session.pool.dataset, data, session.folder, "second", "judge")
    assert not isinstance(second, DuelSession)
    assert {second.pool.pair(at) for at in second.order.tolist()} == set(session.given)


def test_judging_ends_when_the_verdict_stands(session):
    asked = 0
    while (pair := session.next) is not None:
        session.give(3 if pair[1].encode()[-1] % 4 == 0 else 0)
        asked += 1
    assert session.standing.is_settled
    assert asked <= len(session.pool)
    found = labelling_state(session)
    assert found["sentence"].endswith("Settled: no more labels needed.")
    assert found["sentence"].startswith(f"Of {len(session.pool.labels)} usual strategies and systems ")
    folder = session.pool.dataset.path
    told = [f"steelyard judge {folder} --random"]  # not all queries have labels, and these are not applied yet
    assert [step["command"] for step in found["steps"]] == told


def test_what_labels_of_relevant_entries_alone_leave_out_is_not_relevant(data, tmp_path):
    # Two queries are labelled, with what is relevant: their other pairs count as judged, those of others do not.
    queries = data.dataset.queries[:4]
    qrels = {query.id: dict.fromkeys(data.dataset.qrels.get(query.id, {}), 2) for query in queries[:2]}
    zero = {**qrels, queries[0].id: {**qrels[queries[0].id], "none": 0}}

    def made(labels, **about):
        return opened(replace(data.dataset, qrels=labels, queries=queries, **about), data, tmp_path)

    alone = made(qrels, pool=None)
    assert alone.standing.judged.tolist() == (alone.pool.query < 2).tolist()
    for other in (made(zero, pool=None), made(qrels, sampled="duel")):  # single pairs mean nothing more
        assert other.standing.judged.sum() == (other.pool.known >= 0).sum() > 0
