"""Weights by intent, learned from a log by the command: queries of two intents want opposite weights."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.config.search_config import SearchConfig
from steelyard_eval.cli.main import main
from steelyard_eval.learn import learned_document as document
from steelyard_eval.learn.policies import _square

CURRENT = "weighted_sum(0.7*bm25, 0.3*importance, normalize=minmax)"
INTENTS = ("fix_bug", "find_spec")


def relevant(query, entries):
    """For fix_bug the most important entries with a word of the query; for find_spec those with both words."""
    words = set(query["text"].split()[:2])
    if query["intent"] == "fix_bug":
        return [one["id"] for one in entries if words & set(one["text"].split()) and one["importance"] >= 9]
    return [one["id"] for one in entries if words <= set(one["text"].split())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """320 queries of two words over 100 entries of five words each."""
    path, rng = tmp_path_factory.mktemp("intents"), random.Random(0)  # noqa: S311 -- made data, no secret
    words = [f"word{at}" for at in range(14)]
    entries = [
        {"id": f"e{at:03}", "text": " ".join(rng.sample(words, 5)), "importance": rng.randint(1, 10)}
        for at in range(100)
    ]
    queries = [
        {"id": f"q{at:03}", "text": " ".join([*rng.sample(words, 2), str(at)]), "intent": INTENTS[at % 2]}
        for at in range(320)
    ]
    (path / "dataset.json").write_text(json.dumps({"name": "intents", "as_of": "2026-01-01T00:00:00Z"}))
    for name, rows in (("corpus", entries), ("queries", queries)):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [f"{query['id']} 0 {one} 1\n" for query in queries for one in relevant(query, entries)]
    (path / "qrels.txt").write_text("".join(judged))
    return path


def run(*words):
    found = CliRunner().invoke(main, [*map(str, words), "--embedder", "none"])
    assert found.exit_code == 0, found.stderr
    return found


@pytest.fixture(scope="module")
def learned(folder):
    log, weights = folder / "log.jsonl", folder / "weights.json"
    run("simulate", folder, "--policy", CURRENT, "--sessions", 4000, "-o", log)
    found = run(
        "learn", folder, "--intents", "given", "--feedback", log, "--no-labels", "--out", weights, "--json"
    )
    return json.loads(found.stdout), SearchConfig.load(weights)


def test_only_the_intent_that_needs_other_weights_gets_them(learned):
    record, config = learned
    assert record["verdict"] == config.provenance["verdict"] == "ship"
    assert str(config.strategy) == CURRENT
    assert list(config.by_intent) == ["fix_bug"]
    assert "For fix_bug queries use " in record["sentence"]
    rows = {row["intent"]: row for row in record["intents"]}
    assert (rows["fix_bug"]["verdict"], rows["find_spec"]["verdict"]) == ("ship", "keep")
    assert rows["fix_bug"]["strategy"] == str(config.by_intent["fix_bug"])
    assert record["chosen"]["strategy"] == str(config.effective)


def test_it_is_better_by_the_labels_that_made_the_log(learned, folder):
    found = sy.load(str(folder), embedder="none", intents="given").compare([learned[1], CURRENT], timed=False)
    means = [row["mean"] for row in found.record["results"] if row["metric"] == "nDCG@10"]
    assert means[0] > means[1] + 0.05


def test_an_intent_of_its_own_comes_before_what_is_kept_for_the_others(monkeypatch):
    monkeypatch.setattr(document, "sentence", lambda *_: "Keep your RRF: too few acts.")
    monkeypatch.setattr(document, "promise", lambda *_: SimpleNamespace(mean=0.1))
    judged = SimpleNamespace(candidate=0, verdict="keep", cells=SimpleNamespace(queries=range(12)))
    text = document._sentence(SimpleNamespace(label="RRF"), judged, {"plan": judged}, {"plan": "bm25"})
    own, others = (
        "For plan queries use bm25: +0.100, by 12 of them.",
        "For all others: keep your RRF: too few acts.",
    )
    assert text == f"{own} {others}"


def test_the_lists_of_queries_are_rows_of_ten_places():
    found = _square(np.array([0, 2, 2, 14]), np.arange(14), 3)
    assert found.tolist() == [[0, 1, *[-2] * 8], [-2] * 10, list(range(2, 12))]
