"""What a budget of tokens holds: worked by hand, from the command line and in the gate."""

import json

import numpy as np
import pytest
from shared import document, done, write_set

from steelyard.base.errors import ConfigError
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import evaluate_lists, meaning, parse_measures

SIZES = {"a": 30, "b": 80, "c": 10, "d": 20}
LISTS = Ranked.of(["q", "r"], [["a", "b", "c"], ["b"]])
QRELS = {"q": {"a": 1, "c": 2, "d": 1}, "r": {"b": 1}}


def values(*names, sizes=SIZES):
    found = evaluate_lists(LISTS, QRELS, parse_measures(names), sizes)
    return {str(measure): value.tolist() for measure, value in found.items()}


def test_a_list_ends_with_the_last_entry_that_the_tokens_hold():
    # 30, 110 and 120 tokens down to the places of q: what is too long ends it, whatever would fit behind that
    assert values("R@29t", "R@30t", "R@109t", "R@120t", "RecallAll@80t", "Judged@110t") == {
        "R@29t": [0, 0], "R@30t": [1 / 3, 0], "R@109t": [1 / 3, 1], "R@120t": [2 / 3, 1],
        "RecallAll@80t": [0, 1], "Judged@110t": [1 / 2, 1],
    }  # fmt: skip
    assert np.diff(LISTS.within(110, SIZES).offsets).tolist() == [2, 1]


def test_the_gain_is_a_share_of_that_of_all_relevant_entries():
    ideal = 2 + 1 / np.log2(3) + 1 / 2  # d is in no list
    assert values("nDCG@120t")["nDCG@120t"][0] == pytest.approx((1 + 2 / 2) / ideal)


def test_budgets_need_texts_and_precision_has_none():
    with pytest.raises(ConfigError, match="R@9t"):
        values("R@9t", sizes=None)
    for odd in ("P@9t", "R@0t", "R@t", "R@1.5t"):
        with pytest.raises(ConfigError, match=odd.replace(".", r"\.")):
            parse_measures([odd])
    assert "2000 tokens" in meaning("R@2000t")


@pytest.fixture
def long_and_short(tmp_path, monkeypatch):
    """Both entries answer every query; the one of more words in common is long."""
    monkeypatch.chdir(tmp_path)
    corpus = ["keys rotate weekly " + 100 * "padding ", "keys rotate"]
    labels = "".join(f"q{at} 0 m{entry} 1\n" for at in range(1, 31) for entry in (1, 2))
    queries = [f"keys rotate weekly {at}" for at in range(1, 31)]
    return str(write_set(tmp_path / "mine", corpus, queries, labels, groups="given").relative_to(tmp_path))


def test_a_search_for_a_budget_prefers_what_is_short(long_and_short):
    found = document(
        "compare", long_and_short, "long=bm25[bm25.b=0]", "short=bm25[bm25.b=1]", "--metrics", "R@50t,R@10"
    )
    means = {row["label"]: {name: of["mean"] for name, of in row["means"].items()} for row in found["rows"]}
    assert means["long"]["R@10"] == means["short"]["R@10"] == 1
    assert (means["long"]["R@50t"], means["short"]["R@50t"]) == (0, 0.5)
    (held,) = [note["facts"] for note in found["notices"] if note["key"] == "held"]
    assert held == {"tokens": 50, "counts": ["long 0", "short 1"], "limit": 100}
    chosen = document(
        "recommend", long_and_short, "--tokens", "50", "--current", "bm25[bm25.b=0]", "--out", "w.json"
    )
    best = max(chosen["rows"], key=lambda row: row["means"]["nDCG@50t"]["mean"])
    assert chosen["provenance"]["limit"] == 10 and best["means"]["nDCG@50t"]["mean"] > 0


def test_a_gate_counts_what_the_budget_of_its_baseline_holds(long_and_short):
    done("gate", long_and_short, "a=bm25[bm25.b=1]", "--update", "--reason", "first", "--tokens", "50")
    failed = json.loads(done("gate", long_and_short, "a=bm25[bm25.b=0]", "--json", code=1).stdout)
    assert failed["answer"]["key"] == "fail" and failed["findings"][0]["facts"]["tokens"] == 50
    other = json.loads(done("gate", long_and_short, "--tokens", "60", "--json", code=2).stdout)
    assert other["answer"]["facts"]["differing"] == ["tokens"]
