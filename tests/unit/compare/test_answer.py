"""What a comparison answers first."""

import pytest
from beside import table

from steelyard_eval.compare import compare
from steelyard_eval.compare.answer import answer
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.result.structs import Estimate, Paired, Row, Said

DATA = load(starter())
WHY = Said("p_proves_nothing_alone")


@pytest.fixture(autouse=True)
def every_model_is_installed(monkeypatch):
    monkeypatch.setattr("steelyard_eval.compare.answer.installed_first", lambda steps: steps)


WORDS = {name: name for name in ("bm25", "fts", "large", "proven")}


def outcome(mean, low, high, verdict, **facts):
    """A test with wins, whose p is 0.01 unless it is given."""
    given = {"p": 0.01, "p_holm": 0.01, "wins": 9, "ties": 0, "losses": 3, "worse": 0.2} | facts
    return Paired(Estimate(mean, low, high), verdict, **given)


def row(label, test=None, **facts):
    given = {"kind": "system", "strategy": label} | facts
    return Row(label, means={"nDCG@10": Estimate(0.5, 0.4, 0.6)}, against=test, **given)


def asked(*rows, words=WORDS, options=None, **facts):
    return answer([row("bm25"), *rows], "bm25", "nDCG@10", DATA, words, options or {}, queries=59, **facts)


def test_what_is_proven_goes_before_what_only_looks_larger():
    """The larger difference has an interval with 0 in it, so the smaller one is the answer."""
    large = row("large", outcome(0.098, -0.01, 0.206, "open"))
    proven = row("proven", outcome(0.066, 0.02, 0.112, "better"))
    found = asked(large, proven)
    assert (found.key, found.facts["choice"], found.facts["one_of"]) == ("better", "proven", 2)
    without = asked(large, row("proven", outcome(0.066, 0.02, 0.112, "open")))
    assert (without.key, without.facts["choice"], without.facts["best_of"]) == ("open", "large", 2)
    assert "tried" not in without.facts
    corrected = row("large", outcome(0.098, -0.01, 0.206, "open", p=0.03, p_holm=0.06, why=WHY))
    found = asked(corrected, row("other", outcome(0.01, -0.1, 0.1, "open")))
    assert (found.facts["tried"], found.because) == (2, [WHY])


NEXT = [("better", "find_best"), ("worse", "find_better"), ("same", "find_better")]


class TestAnswer:
    @pytest.mark.parametrize(("verdict", "key"), NEXT)
    def test_what_is_proven_is_tuned_and_what_is_not_looked_for(self, verdict, key):
        (step,) = asked(row("fts", outcome(0.066, 0.02, 0.112, verdict))).steps
        assert (step.key, step.command[:2]) == (key, ["steelyard", "recommend"])
        assert step.command[-2:] == ["--current", "bm25"]

    def test_weights_that_are_better_are_searched_with(self):
        better = outcome(0.066, 0.02, 0.112, "better")
        named = {"bm25": "bm25", "fts": "mine=w.json"}
        tuned = row("fts", better, tuned=True)
        found = asked(tuned, words=named, model="minilm")
        index, search = found.steps
        assert index.command[-3:] == ["starter.db", "--weights", "w.json"]
        assert search.key == "search_tuned"  # what was tuned already is not to be tuned again
        assert Said("flattered") in found.because
        rows = [row("bm25", tuned=True), tuned]  # as optimistic as each other
        assert answer(rows, "bm25", "nDCG@10", DATA, named, {}, queries=59).because == []
        edited = row("fts", better, tuned=True, edited=True, system="echovault", strategy="fts at its best")
        found = asked(edited, words=named, options={"--embedder": "wordllama"})
        assert found.formula == "echovault with fts at its best"
        assert found.because == []  # nobody tuned what was edited since
        index, search, step = found.steps
        assert search.command[-2:] == ["--weights", "w.json"]
        assert step.command[-4:] == ["--current", "mine=w.json", "--embedder", "wordllama"]

    def test_of_two_that_are_equal_on_every_query_no_more_labels_are_asked_for(self):
        found = asked(row("fts", outcome(0.0, -0.02, 0.02, "open", wins=0, losses=0)))
        assert (found.key, found.steps) == ("equal", [])

    @table("verdict old new out")
    def test_no_command_replaces_the_weights_that_were_compared(self, verdict, old, new, out):
        found = asked(row("new", outcome(0.066, 0.02, 0.112, verdict)), words={"bm25": old, "new": new})
        assert found.steps[-1].command[-1] == out

    @pytest.mark.parametrize("word", [None, "mine=a.run"])
    def test_lists_that_are_better_have_no_weights_to_look_for(self, word):
        mine = row("mine", outcome(0.066, 0.02, 0.112, "better"), kind="lists", strategy="a Pipeline")
        found = asked(mine, words={"bm25": "bm25", "mine": word})
        (step,) = found.steps
        assert (found.formula, step.key) == ("", "only_lists")
        assert step.command[-2:] == (["--current", word] if word else [])

    def test_as_many_new_queries_are_asked_for_as_the_difference_needs(self):
        step, *_ = asked(row("fts", outcome(0.06, -0.01, 0.12, "open", needed=94))).steps
        assert (step.key, step.facts["more"]) == ("write_queries", 40)  # 94 - 59 = 35, to tens

    def test_an_interval_wider_than_the_metric_says_nothing(self):
        found = asked(row("fts", outcome(0.3, -0.4, 1.0, "open")))
        assert (found.facts["vague"], found.facts["worse"]) == (True, None)

    def test_the_baseline_is_what_the_data_set_uses_today_else_it_is_not_yours(self):
        """The starter's dataset.json names echovault."""
        for given, baseline, fact, named in (
            (["bm25", "echovault"], None, "used", "echovault"),
            (["bm25", "fts"], None, "baseline", "bm25"),
            (["bm25", "fts"], "bm25", "used", "bm25"),
        ):
            found = compare(starter(), given, baseline=baseline, timed=False).result
            assert (found.provenance.baseline, found.answer.facts[fact]) == (named, named)
