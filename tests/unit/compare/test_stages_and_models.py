"""Which parts of a search pay nothing, and whether the embedding model may be changed."""

import shutil

import numpy as np
import pytest
from shared import ROOT, document, done

import steelyard_eval as sy
from steelyard.systems import find_system
from steelyard_eval.workbench.variants import without_each


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return shutil.copytree(ROOT / "qrels" / "starter", tmp_path_factory.mktemp("own") / "starter")


@pytest.fixture(scope="module")
def bench(own):
    return sy.load(own, embedder="lsa")


def test_every_signal_and_every_stage_but_the_cut_is_left_out_once():
    """Soleri's document: six signals, and a list that merges the federated tiers before it is cut."""
    made = without_each(find_system("soleri").config(10))
    left = {"severity", "recency", "tags", "domain", "tfidf", "cosine", "merge"}
    assert made.keys() == {"whole", *(f"without {name}" for name in left)}
    assert "recency" not in made["without recency"].effective.signals
    with pytest.raises(sy.ConfigError):
        without_each(find_system("bm25").config(10))


def test_a_part_that_changes_nothing_may_go_and_one_that_finds_all_may_not(bench, own):
    """No entry of the set has an importance of its own, so it moves nothing; without fts nothing is found."""
    found = bench.compare_stages("weighted_sum(1*fts, 0.0001*importance)")
    facts = found.result.answer.facts
    assert found.result.answer.key == "stages"
    assert facts["unused"] == ["importance"]
    known = document("compare", own, "weighted_sum(1*fts, 0.0001*importance)", "--stages", "--embedder", "lsa")
    assert known["answer"]["facts"] == found.record["answer"]["facts"]


def test_each_model_is_measured_under_weights_of_its_own_that_were_chosen_without_the_query(bench, own):
    compared = bench.compare_models("rrf(bm25, vector)", old="lsa", new="recorded:minilm")
    (told,) = (one for one in compared.result.notices if one.key == "unjudged_models")
    assert told.facts["shares"][1].endswith("% under minilm")
    found = compared.values
    for values, name in zip(found.values(), ("lsa", "recorded:minilm"), strict=True):
        tuned = sy.load(own, embedder=name).recommend(only="rrf(bm25, vector)")
        assert np.array_equal(values["nDCG@10"], tuned.out_of_fold)
    assert list(found) == ["lsa", "minilm"]
    for strategy, new in (("rrf(bm25, vector)", "lsa"), ("bm25", "recorded:minilm")):  # one model, and no vectors
        with pytest.raises(sy.ConfigError):
            bench.compare_models(strategy, old="lsa", new=new)
    many = done("compare", own, "bm25", "fts", "--embedder", "lsa", "--embedder", "none", code=2)
    assert "at most one" in many.stderr


@pytest.mark.parametrize("models", ["lsa recorded told", "lsa lsa", "lsa auto told", "auto recorded"])
def test_the_gate_tells_a_change_of_model_from_one_of_code(own, tmp_path, models):
    first, embedder, *told = models.split()
    data, base = shutil.copytree(own, tmp_path / "own"), tmp_path / "base.json"
    renewed = "--update", "--reason", "first", "--embedder", first
    done("gate", data, "rrf(bm25, vector)", "--baseline", base, *renewed)
    found = document("gate", data, "--baseline", base, "--embedder", embedder)
    assert any(one["key"] == "gate_model" for one in found["notices"]) is bool(told)
