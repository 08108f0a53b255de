"""What a comparison answers first."""

from steelyard_eval.compare import compare
from steelyard_eval.compare.compared_answer import TOO_FEW, answer
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import starter


def test_what_is_proven_goes_before_what_only_looks_larger():
    """The larger difference has an interval with 0 in it, so the smaller one is the answer."""
    rows = [
        {"challenger": "large", "delta": 0.098, "low": -0.01, "high": 0.206, "verdict": TOO_FEW},
        {"challenger": "proven", "delta": 0.066, "low": 0.02, "high": 0.112, "verdict": "better"},
    ]
    record = {"primary": "nDCG@10", "baseline": "bm25", "comparisons": rows, "configurations": []}
    assert answer(record).sentence.startswith("Better: proven, one of 2, is +0.066 nDCG@10 over your bm25")
    without = record | {"comparisons": [rows[0], rows[1] | {"verdict": TOO_FEW}]}
    assert answer(without).sentence.startswith("Too few queries to tell: large, best of 2, is +0.098")
    without["comparisons"][0] |= {"p": 0.03, "p_holm": 0.06}
    assert answer(without).sentence.startswith("Too few queries to tell, corrected for the 2 tried: large, best")


def test_what_is_proven_is_tuned_and_what_is_not_looked_for():
    row = {"challenger": "fts", "delta": 0.066, "low": 0.02, "high": 0.112, "verdict": "better"}
    record = {"primary": "nDCG@10", "baseline": "bm25", "configurations": [], "dataset": {"judged": 59}}
    for verdict, what in (("better", "prove them"), ("worse", "something better")):
        found = answer(record | {"comparisons": [row | {"verdict": verdict}]}, load(starter()), {"bm25": "bm25"})
        (step,) = found.steps
        assert what in str(step)
    tuned = {"configurations": [{"label": "fts", "strategy": "fts", "tuned": True}], "comparisons": [row]}
    named = {"bm25": "bm25", "fts": "mine=w.json"}
    index, search = answer(record | tuned | {"model": "minilm"}, load(starter()), named).steps
    assert index.command.endswith(" starter.db --weights w.json")
    assert search.command.endswith(" --weights w.json")  # what was tuned already is not to be tuned again
    flattered = "that it is worse. It was tuned on these queries, so the gain is optimistic."
    row["worse"] = 0.001  # told in the sentence, which may be read alone
    assert answer(record | tuned).sentence.endswith(flattered)
    both = {"configurations": [*tuned["configurations"], {"label": "bm25", "strategy": "bm25", "tuned": True}]}
    assert "optimistic" not in answer(record | tuned | both).sentence
    tuned["configurations"][0] |= {"edited": True, "system": "echovault", "strategy": "fts at its best"}
    assert answer(record | tuned).formula == "echovault with fts at its best"
    assert "optimistic" not in answer(record | tuned).sentence  # nobody tuned what was edited since
    index, search, step = answer(record | tuned, load(starter()), named, {"--embedder": "wordllama"}).steps
    assert search.command.endswith(" --weights w.json")
    assert step.command.endswith(" --current mine=w.json --embedder wordllama")


def test_of_two_that_are_equal_on_every_query_no_more_labels_are_asked_for():
    row = {
        "challenger": "fts",
        "delta": 0.0,
        "low": -0.02,
        "high": 0.02,
        "verdict": TOO_FEW,
        "wins": 0,
        "losses": 0,
    }
    record = {"primary": "nDCG@10", "baseline": "bm25", "configurations": [], "dataset": {"judged": 59}}
    found = answer(record | {"comparisons": [row]}, load(starter()), {"bm25": "bm25", "fts": "fts"})
    assert found.sentence.startswith("Equal on every query: fts is 0.000 nDCG@10 over your bm25")
    assert found.steps == ()


def test_no_command_replaces_the_weights_that_were_compared():
    row = {"challenger": "new", "delta": 0.066, "low": 0.02, "high": 0.112, "verdict": "better"}
    record = {"primary": "nDCG@10", "baseline": "old", "configurations": [], "dataset": {"judged": 59}}
    for verdict, old, new, out in (
        ("better", "echovault", "./search-weights.json", "search-weights.new.json"),
        ("better", "search-weights.json", "moltnet", "search-weights.new.json"),
        ("worse", "search-weights.json", "moltnet", "search-weights.new.json"),
        ("better", "echovault", "moltnet", "echovault"),
    ):
        found = record | {"comparisons": [row | {"verdict": verdict}]}
        assert answer(found, load(starter()), {"old": old, "new": new}).steps[-1].command.split()[-1] == out


def test_lists_that_are_better_have_no_weights_to_look_for():
    row = {"challenger": "mine", "delta": 0.066, "low": 0.02, "high": 0.112, "verdict": "better"}
    lists = [{"label": "mine", "strategy": "a Pipeline", "kind": "lists"}]
    record = {"primary": "nDCG@10", "baseline": "bm25", "configurations": lists, "dataset": {"judged": 59}}
    for words, command in (
        ({"bm25": "bm25"}, ""),
        ({"bm25": "bm25", "mine": "mine=a.run"}, "--current mine=a.run"),
    ):
        found = answer(record | {"comparisons": [row]}, load(starter()), words)
        (step,) = found.steps
        assert (found.formula, "no weights to tune" in step.what) == ("", True)
        assert step.command.endswith(command)
        assert bool(step.command) == bool(command)
    mine = compare(starter(), {"mine": lambda query: ["infra-k3s"]}, timed=False)
    assert mine.record["configurations"][-1]["kind"] == "lists"


def test_as_many_new_queries_are_asked_for_as_the_difference_needs():
    row = {
        "challenger": "fts",
        "delta": 0.06,
        "low": -0.01,
        "high": 0.12,
        "verdict": TOO_FEW,
        "queries_needed": 94,
    }
    record = {"primary": "nDCG@10", "baseline": "bm25", "configurations": [], "dataset": {"judged": 59}}
    (step,) = answer(record | {"comparisons": [row]}, load(starter()), {"bm25": "bm25", "fts": "fts"}).steps
    assert "write about 40 new ones into" in step.what  # 94 - 59 = 35, to tens


def test_the_baseline_is_what_the_data_set_uses_today_else_it_is_not_yours():
    """The starter's dataset.json names echovault."""
    today = compare(starter(), ["bm25", "echovault"], timed=False)
    assert today.record["baseline"] == "echovault"
    assert "over your echovault" in today.sentence
    first = compare(starter(), ["bm25", "fts"], timed=False)
    assert first.record["baseline"] == "bm25"
    assert "your" not in first.sentence
    assert "your bm25" in compare(starter(), ["bm25", "fts"], baseline="bm25", timed=False).sentence
