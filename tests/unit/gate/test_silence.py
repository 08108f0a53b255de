"""What the gate says of false answers and of what a floor loses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from shared import done, tabled, write_set

from steelyard.finish import parse_stages
from steelyard.systems import find_system
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.gate.rule import kept_promise, sign_test_increase


@tabled
def test_false_answers_are_tested_by_sign(came, went, asked, verdict):
    before = {f"q{at}" for at in range(10)}
    now = {f"q{at}" for at in range(went, 10)} | {f"new{at}" for at in range(came)}
    found = sign_test_increase("gate_false_answers", now, before, asked, 0.04)
    assert found.verdict == verdict
    budget = 0.04 if verdict == "inconclusive" else None
    facts = {"now": 10 - went + came, "of": asked, "before": 10, "budget": budget}
    assert facts.items() <= found.facts.items()
    if came > went:
        p = stats.binomtest(came, came + went, 0.5, alternative="greater").pvalue
        assert found.facts["p"] == pytest.approx(p)


def test_a_promise_is_broken_where_student_says_so():
    rng = np.random.default_rng(0)
    lost = rng.uniform(0, 0.5, size=60)  # the mean is about .25
    assert stats.ttest_1samp(lost, 0.1, alternative="greater").pvalue < 0.05
    assert kept_promise(0.1, lost, np.arange(60)).verdict == "fail"
    assert kept_promise(0.9, lost, np.arange(60)).verdict == "pass"
    assert kept_promise(0.1, lost, np.zeros(60, dtype=int)).verdict == "inconclusive"  # a single unit
    few = lost[:60] - lost[:60].mean() + 0.101
    assert kept_promise(0.1, few, np.arange(60)).verdict == "inconclusive"


@pytest.fixture
def folder(tmp_path):
    """Thirty entries, a query for each, and as many questions whose words are in every entry."""
    names = [f"word{chr(97 + at)}" for at in range(26)]
    corpus = [{"id": name, "text": f"{name} stands here"} for name in names]
    asked = [{"id": f"q{at}", "text": name} for at, name in enumerate(names)]
    asked += [{"id": f"n{at}", "text": f"stands {at}", "answerable": False} for at in range(26)]
    qrels = "".join(f"q{at} 0 {name} 1\n" for at, name in enumerate(names))
    return write_set(tmp_path / "mine", corpus, asked, qrels, as_of="2026-01-01")


def test_a_gate_that_starts_to_answer_what_has_no_answer_fails(folder, tmp_path):
    base, weights = tmp_path / "base.json", tmp_path / "search-weights.json"
    words = ["gate", folder, f"mine={weights}", "--baseline", base, "--embedder", "none"]
    config = find_system("bm25").config(10, "", {})
    floor = parse_stages(["floor(0.5, on=weighted_sum(1*bm25, normalize=theoretical))"])
    replace(config, finish=(*config.finish, *floor)).save(weights)
    done(*words, "--update", "--reason", "begun")
    assert len(json.loads(base.read_text())["contenders"][0]["answered"]) == 0
    config.save(weights)
    assert "26 of 26 unanswerable" in " ".join(done(*words, code=1).output.split())
    record = json.loads(base.read_text())
    record["contenders"][0]["answered"] = [f"n{at}" for at in range(24)]  # so that two more are no evidence
    base.write_text(json.dumps({**record, "seal": hashed({k: v for k, v in record.items() if k != "seal"})}))
    for name in ("search-weights.json", "other.json"):
        config.save(tmp_path / name)
        words[2] = f"mine={tmp_path / name}"
        step = json.loads(done(*words, "--json").stdout)["answer"]["steps"][0]
        assert (step["key"], step["facts"]["other"]) == ("gate_accept", name == "other.json")
        assert ("--update" in step.get("command", [])) is (name == "search-weights.json")
