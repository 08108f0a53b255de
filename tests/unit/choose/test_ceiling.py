"""The row of a learned model: planted worlds, what it must not change, and where it is computed."""

import json

import numpy as np
import pytest
from shared import STARTER, document, tabled

import steelyard_eval as sy
from steelyard_eval.candidates.ceiling import _best
from steelyard_eval.result.structs import replace

pytestmark = pytest.mark.usefixtures("opened_once")
QUERIES, PLACES = 60, 30


def said(found):
    return next((one for one in found.result.answer.because if one.key.startswith("ceiling")), None)


def ids(query):
    return [f"e{query:02}-{place:02}" for place in range(PLACES)]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Two lists of random scores, recorded, under labels that follow nothing, their sum, or how close they are."""
    rng = np.random.default_rng(0)
    scores = rng.random((2, QUERIES, PLACES))
    close = np.abs(scores[0] - scores[1])
    worth = {
        "nothing": np.random.default_rng(2).random(close.shape),
        "sum": scores.sum(axis=0),
        "closeness": -close,
    }
    lists = {
        name: {f"q{q}": dict(zip(ids(q), own[q].tolist(), strict=True)) for q in range(QUERIES)}
        for name, own in zip("ab", scores, strict=True)
    }
    corpus = [{"id": id_, "text": id_} for q in range(QUERIES) for id_ in ids(q)]
    queries = {f"q{q}": f"question {q} of {q * q}" for q in range(QUERIES)}
    made = {}
    for name, values in worth.items():
        qrels = {f"q{q}": {ids(q)[at]: 1 for at in np.argsort(-values[q])[:4]} for q in range(QUERIES)}
        data = sy.load(corpus, queries, qrels, embedder="none")
        folder = tmp_path_factory.mktemp(name) / "lists"
        data.record(folder, lists=lists)
        made[name] = data, folder
    return made


@tabled
def test_a_model_is_worth_it_where_no_sum_has_what_labels_follow(worlds, world, key, low, high):
    data, folder = worlds[world]
    found = data.recommend("a", recording=folder, ceiling=True)
    facts = said(found).facts
    assert said(found).key == key
    (row,) = found.result.table("ceiling")
    assert row["above"].mean == pytest.approx(facts["learned"] - facts["reached"])
    assert low < facts["learned"] == row["interval"].mean < high


def test_it_changes_no_decision_and_is_computed_for_pages_alone(worlds, tmp_path):
    data, folder = worlds["closeness"]
    plain, asked = (data.recommend("a", recording=folder, ceiling=ceiling) for ceiling in (False, True))
    assert said(plain) is None
    assert asked.result.decision == plain.result.decision
    assert asked.result.rows == plain.result.rows
    assert asked.config.strategy == plain.config.strategy
    assert plain.with_ceiling().result == asked.result
    for found, name in ((plain, "plain"), (asked, "asked")):
        found.report(tmp_path / name)
    pages = [(tmp_path / name / "report.json").read_bytes() for name in ("plain", "asked")]
    assert pages[0] == pages[1]
    tables = [table["key"] for table in json.loads(pages[0])["tables"]]
    assert tables.count("ceiling") == 1
    assert "ceiling" not in json.dumps(plain.to_json())
    one, other = (data.compare("a, b", recording=folder, ceiling=ceiling) for ceiling in (True, False))
    assert (best := said(one).facts["other"]) in ("a", "b")
    assert other.with_ceiling().result == one.result
    assert (
        _best(replace(one.result, rows=[replace(row, tuned=row.label == best) for row in one.result.rows])) != best
    )


def test_a_command_computes_it_where_it_is_asked_for_and_few_labels_have_none():
    shown = [document("compare", STARTER, "bm25,echovault", *option) for option in ((), ("--ceiling",))]
    keys = [[table["key"] for table in one["tables"]] for one in shown]
    assert keys[1] == ["ceiling", *keys[0]]
    qrels = {"q1": {"e1": 1}, "q2": {"e2": 1}}
    data = sy.load([{"id": f"e{i}", "text": f"word{i}"} for i in (1, 2)], {"q1": "word1", "q2": "word2"}, qrels)
    assert said(data.compare("bm25", timed=False, ceiling=True)).key == "ceiling_few"
