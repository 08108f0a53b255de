"""The explorer without its picture: what moves, what is measured, what is written."""

import json

import numpy as np
import pytest
from shared import tabled

from steelyard import Entry, SearchConfig, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.notebook.explorer.exploration import Exploration, _first
from steelyard_eval.notebook.explorer.explored_data import weight_names

pytest.importorskip("anywidget", reason="the extra notebooks is not installed")
from steelyard_eval.notebook.explorer.explored_data import described
from steelyard_eval.notebook.explorer.widget import Explorer

SUM = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def bench(data):
    """The recordings, made once."""
    return data.explore(SUM, "bm25").exploration.bench


@pytest.fixture
def explorer(bench):
    return Explorer(Exploration(bench, read_config(SUM), "bm25"))


def replayed(data, strategy, split="train"):
    """The values of a strategy by the comparison, which replays."""
    return data.compare({"x": strategy}, metrics="nDCG@10", split=split, timed=False).values["x"]["nDCG@10"]


def test_a_moved_weight_is_measured_as_the_comparison_measures_it(data, explorer):
    found = explorer.exploration.weigh(0, 0.55)["result"]
    expected = replayed(data, "weighted_sum(0.55*bm25, 0.7*vector, normalize=minmax)")
    assert explorer.exploration.values == pytest.approx(expected, abs=1e-12)
    assert found["mean"] == pytest.approx(expected.mean(), abs=1e-12)
    assert found["strategy"] == "weighted_sum(0.55*bm25, 0.7*vector, normalize=minmax)"
    assert found["gain"][0] == pytest.approx((expected - replayed(data, "bm25")).mean(), abs=1e-12)


def test_categories_wins_and_losses_are_those_of_the_differences(data, explorer):
    found = explorer.exploration.weigh(0, 0.55)["result"]
    differences = replayed(data, found["strategy"]) - replayed(data, "bm25")
    queries = [query for query in data.dataset.split("train") if query.id in data.dataset.qrels]
    assert (found["wins"], found["losses"]) == ((differences > 1e-12).sum(), (differences < -1e-12).sum())
    assert found["worst"][0]["id"] == queries[int(np.argmin(differences))].id
    name, count, now, before = found["categories"][0]
    own = [query.category == name for query in queries]
    assert (name, count) == ("identifier", sum(own))
    assert now - before == pytest.approx(differences[own].mean(), abs=1e-12)


def test_the_curve_is_what_every_weight_on_it_gives(data, explorer):
    found = explorer.exploration.curve(1)
    for weight, value in found["points"][::37]:
        text = f"weighted_sum(0.3*bm25, {weight:.6f}*vector, normalize=minmax)"
        assert value == pytest.approx(replayed(data, text).mean(), abs=1e-6)
    low, high = found["here"]
    assert low < 0.7 < high
    at = [
        explorer.exploration.weigh(1, weight)["result"]["mean"]
        for weight in (low + 1e-7, high - 1e-7, high + 1e-7)
    ]
    assert at[0] == pytest.approx(at[1], abs=1e-12)
    assert abs(at[2] - at[1]) > 1e-9


def test_contributions_add_up_to_the_score_and_places_are_those_of_the_baseline(data, explorer):
    rows = explorer.exploration.find("pool")["ranking"]
    explained = data.explain(rows["id"], "bm25").to_frame()
    assert "pool" in rows["text"].casefold()
    assert [row["id"] for row in rows["before"]] == explained["id"].tolist()[:10]
    for row in rows["now"]:
        assert sum(value for _, value in row["parts"]) == pytest.approx(row["score"], abs=1e-12)
        listed = [other["id"] for other in rows["before"]]
        assert row["before"] == (listed.index(row["id"]) + 1 if row["id"] in listed else None)


@tabled
def test_every_weight_has_a_name(strategy, names):
    assert weight_names(parse_strategy(strategy)) == names


def test_a_system_without_a_linear_form_is_replayed(data, explorer):
    found = explorer.exploration.begin("spec_kit:shipped")
    assert not found["controls"]["curves"]
    assert found["result"]["mean"] == pytest.approx(replayed(data, "spec_kit:shipped").mean(), abs=1e-12)
    assert explorer.exploration.curve(0)["points"] == []


def test_adopting_writes_what_was_seen_and_promises_less(data, explorer, tmp_path):
    explorer.exploration.weigh(0, 0.4)
    config = SearchConfig.load(explorer.adopt(tmp_path / "w.json"))
    strategy = "weighted_sum(0.4*bm25, 0.7*vector, normalize=minmax)"
    gains = replayed(data, strategy) - replayed(data, "bm25")
    assert str(config.strategy) == strategy
    assert config.provenance["chosen_by"] == "hand"
    assert config.provenance["seed"] == 0  # nothing is drawn
    assert "verdict" not in config.provenance
    promise = config.provenance["promise"]
    # 1 - 1/t^2 is left of a gain, by its own t; five groups of two queries move t by little
    t = gains.mean() / (gains.std(ddof=1) / np.sqrt(len(gains)))
    assert promise["value"] == pytest.approx(gains.mean() * (1 - 1 / t**2), rel=0.02)
    assert promise["value"] < 0.95 * gains.mean()
    out = replayed(data, strategy, "test") - replayed(data, "bm25", "test")
    assert config.provenance["holdout"]["value"] == pytest.approx(out.mean(), abs=1e-12)
    assert config.provenance["holdout"]["queries"] == len(out)


def test_a_run_can_be_what_is_used_today(data, tmp_path):
    data.compare("vector", metrics="nDCG@10", split="train", timed=False, write_runs=tmp_path)
    own = data.explore("vector", str(tmp_path / "vector.documented.run")).exploration
    against_bm25 = data.explore("vector", "bm25").exploration.opened()["result"]["gain"][0]
    assert against_bm25 == pytest.approx((replayed(data, "vector") - replayed(data, "bm25")).mean(), abs=1e-12)
    assert own.opened()["result"]["gain"][0] == pytest.approx(0, abs=1e-12)
    with pytest.raises(ConfigError, match="which has lists"):
        data.explore(None, str(tmp_path / "vector.documented.run"))


def test_a_recording_is_explored_without_searching(data, tmp_path):
    (folder,) = data.record(tmp_path, "plain", split="all")
    found = data.explore("rrf(fts, 2*vector)", "rrf(fts, vector)", recording=folder)
    assert found.value == pytest.approx(replayed(data, "rrf(fts, 2*vector)").mean(), abs=1e-12)


def test_messages_are_answered_once_and_errors_with_their_reason(explorer, monkeypatch):
    sent = []
    monkeypatch.setattr(explorer, "send", sent.append)
    explorer._answer(None, {"do": "weigh", "at": 0, "value": 0.5, "number": 7}, None)
    explorer._answer(None, {"do": "weigh", "at": 0, "value": 5, "number": 8}, None)
    explorer._answer(None, {"do": "write", "text": "rrf(", "number": 9}, None)
    assert [one["to"] for one in sent] == [7, 8, 9]
    assert sent[0]["result"]["weights"] == [0.5, 0.7]
    assert "outside 0..1" in sent[1]["error"]
    assert "rrf(" in sent[2]["error"]
    json.dumps(sent, allow_nan=False)  # what goes to the browser is JSON


def test_entries_of_one_speaker_are_told_apart():
    """A short title, which may be a speaker's name, is followed by the text; a long one says enough."""
    long = "A title that is longer than a speaker's name"
    entries = {
        "a": Entry("a", "Ann", "I keep bees."),
        "b": Entry("b", long, "and more"),
        "c": Entry("c", "", "Rain."),
    }
    titles = [described(id_, entries, {})["title"] for id_ in ("a", "b", "c", "lost")]
    assert titles == ["Ann: I keep bees.", long, "Rain.", "lost"]


def test_it_opens_on_the_worst_query_that_shows_something():
    """The third has the least value above 0 and a list; where nothing is relevant the first with a list."""
    lists = [[], ["a"], ["b"], ["c"]]
    assert _first(np.array([0.0, 0.9, 0.2, 0.0]), lists) == 2
    assert _first(np.zeros(4), lists) == 1
    assert _first(np.zeros(4), [[]] * 4) == 0
