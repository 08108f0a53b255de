"""The estimator: scikit-learn's own checks, values of pytrec_eval, planted weights, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from shared import STARTER, tabled

import steelyard_eval as sy

SUM = "weighted_sum(0.5*a, 0.5*b, normalize=minmax)"


def test_it_keeps_the_conventions_of_scikit_learn():
    """All checks apply: scikit-learn itself leaves out that of its array API."""
    from sklearn.utils.estimator_checks import check_estimator  # here: it takes seconds to load

    found = check_estimator(sy.FusionTuner(), on_skip=None)
    assert {one["check_name"] for one in found if one["status"] != "passed"} == {"check_array_api_input"}


def world(queries=30, places=20, seed=0):
    """Two lists of which one is right, and the other noise; each misses some entries."""
    rng = np.random.default_rng(seed)
    size = queries * places
    frame = pd.DataFrame({"query": np.repeat([f"q{i}" for i in range(queries)], places)})
    frame["entry"] = [f"e{i:02}" for i in rng.permuted(np.tile(np.arange(places), (queries, 1)), axis=1).ravel()]
    frame["a"], frame["b"] = rng.random(size), rng.random(size)
    grade = (frame.groupby("query")["a"].rank(ascending=False) <= 4).astype(int).to_numpy()
    frame.loc[rng.random(size) < 0.2, "b"] = np.nan
    return frame, grade


def by_trec_eval(frame, grades, scores):
    """nDCG@10 by pytrec_eval of the ranking by score, equal ones by ascending entry; -inf is no result."""
    table = frame[["query", "entry"]].assign(score=scores, grade=grades)
    qrels = {
        query: dict(zip(own["entry"], own["grade"].tolist(), strict=True)) for query, own in table.groupby("query")
    }
    shown = table[np.isfinite(scores)].sort_values(["score", "entry"], ascending=[False, True])
    run = {q: {e: float(-at) for at, e in enumerate(own["entry"])} for q, own in shown.groupby("query")}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    return sum(row["ndcg_cut_10"] for row in found.values()) / len(qrels)


@tabled
def test_scores_are_those_of_trec_eval_and_of_compare(strategy):
    data = sy.load(STARTER)
    frame, grades, groups = data.signal_frame("all")
    tuner = sy.FusionTuner(strategy).fit(frame, grades)
    value = tuner.score(frame, grades)
    assert value == pytest.approx(by_trec_eval(frame, grades, tuner.predict(frame)), abs=1e-9)
    row = data.compare(tuner.strategy_, split="all", timed=False).result.rows[0]
    assert value == pytest.approx(row.means["nDCG@10"].mean, abs=1e-12)
    assert (pd.Series(groups).groupby(frame["query"]).nunique() == 1).all()


def test_it_finds_the_list_that_is_right_whatever_the_order_of_the_rows():
    frame, grades = world()
    tuner = sy.FusionTuner(SUM).fit(frame, grades)
    assert tuner.score(frame, grades) == pytest.approx(1.0)
    order = np.random.default_rng(1).permutation(len(frame))
    again = sy.FusionTuner(SUM).fit(frame.iloc[order], grades[order])
    assert again.strategy_ == tuner.strategy_
    assert np.array_equal(again.predict(frame.iloc[order]), tuner.predict(frame)[order])


def test_cross_validation_and_searches_keep_queries_whole():
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

    frame, grades = world()
    values = cross_val_score(sy.FusionTuner(SUM), frame, grades, groups=frame["query"], cv=GroupKFold(5))
    assert values == pytest.approx(np.ones(5))
    grid = {"strategy": ["b", "rrf(b, k=10)", SUM], "metric": ["nDCG@10", "R@10"]}
    search = GridSearchCV(
        sy.FusionTuner(),
        grid,
        cv=GroupKFold(3),
        scoring=lambda tuner, *pair: tuner.set_params(metric="nDCG@10").score(*pair),
    ).fit(frame, grades, groups=frame["query"])
    assert search.best_params_["strategy"] == SUM


def test_an_entry_that_nothing_returned_comes_last_and_counts_in_the_ideal():
    frame = pd.DataFrame({"query": ["q", "q"], "entry": ["x", "y"], "a": [0.5, np.nan]})
    tuner = sy.FusionTuner("a").fit(frame, [1, 1])
    assert tuner.predict(frame).tolist() == [0.5, -np.inf]
    assert tuner.score(frame, [1, 1]) == pytest.approx(1 / (1 + 1 / np.log2(3)))


@tabled
def test_what_cannot_be_read_is_refused(change, grades, rule):
    frame = pd.DataFrame({"query": ["q", "q"], "entry": ["x", "y"], "a": [0.5, 0.4]}).assign(**change)
    with pytest.raises(ValueError, match=rule):
        sy.FusionTuner("a").fit(frame, grades)


def test_a_strategy_over_lists_that_are_not_there_is_refused():
    with pytest.raises(sy.ConfigError, match="c"):
        sy.FusionTuner("rrf(a, c)").fit(*world(3))
