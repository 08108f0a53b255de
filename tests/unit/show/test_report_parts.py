"""Parts of reports, from documents written out by hand: order, columns, scales and what is missing."""

import pytest

from steelyard_eval.show.report.blocks import Page, Pairs, TermList
from steelyard_eval.show.report.coverage import coverage
from steelyard_eval.show.report.decision_section import _parted, promised
from steelyard_eval.show.report.leaderboard import cost
from steelyard_eval.show.report.queries import pairs
from steelyard_eval.show.report.sides import sides


def share(label, value, metric="Judged@10"):
    return {"label": label, "metric": metric, "mean": value, "low": None, "high": None}


def judged(**shares):
    means = [share(label, 0.5, "nDCG@10") for label in shares]
    results = [*means, *(share(label, value) for label, value in shares.items())]
    found = coverage({"primary": "nDCG@10", "baseline": "base", "results": results})
    return [block.text for block in found if not isinstance(block, TermList)]


def test_hits_judged_about_as_often_as_the_baselines_are_no_warning():
    assert judged(base=0.8, other=0.79) == judged(base=0.8, other=0.81) == []
    (fewer,) = judged(base=0.8, other=0.6)
    (more,) = judged(base=0.8, other=1.0)
    assert fewer.startswith("Fewer hits")
    assert more.startswith("More hits")


def test_the_query_that_changes_most_comes_first_whatever_its_name_and_direction():
    values = {"a": (0.5, 0.6), "b": (0.9, 0.1), "c": (0.4, 0.4), "d": (0.2, 0.7), "e": (0.6, 0.5)}
    lists = [{"label": label, "queries": {}} for label in ("left", "right")]
    results = {
        "primary": "nDCG@10",
        "results": [share("left", 0.5, "nDCG@10"), share("right", 0.4, "nDCG@10")],
        "rankings": {"lists": lists, "entries": {}, "grades": {}},
        "per_query": [
            {"id": name, "text": name, "values": {"left": left, "right": right}}
            for name, (left, right) in values.items()
        ],
    }
    (block,) = pairs(results, sides(results))
    assert isinstance(block, Pairs)
    assert [pair.text for pair in block.pairs] == ["b", "d", "a", "e"]  # b falls by 0.8; c is as it was


@pytest.mark.parametrize(("current", "shown"), [({"strategy": "fts"}, "fts"), (None, "\u2013")])
def test_the_current_strategy_is_shown_where_there_is_one(current, shown):
    record = {
        "verdict": "ship",
        "leaderboard": [{}],
        "promise": {"metric": "nDCG@10", "value": 0.1, "low": 0.0, "high": 0.2, "harm": 0.01, "queries": 40},
        "chosen": {"strategy": "vector"},
        "current": current,
    }
    _, strategies = promised(record)
    assert dict(strategies.pairs)["chosen"] == "vector"
    assert dict(strategies.pairs)["current"] == shown


@pytest.mark.parametrize(("times", "axis"), [((2.0, 5.0), "p50 ms"), ((5.0, 5.0), "queries embedded")])
def test_costs_are_milliseconds_unless_they_do_not_differ(times, axis):
    labels = ("fts", "vector")
    results = {
        "primary": "nDCG@10",
        "baseline": "fts",
        "configurations": [{"label": label, "strategy": label} for label in labels],
        "results": [share("fts", 0.4, "nDCG@10"), share("vector", 0.5, "nDCG@10")],
        "timing": [
            {"label": label, "p50_ms": ms, "embedding_calls": calls}
            for label, ms, calls in zip(labels, times, (0, 30), strict=True)
        ],
    }
    figure, listed = cost(results)
    assert f"{axis} to the right" in figure.note
    assert "fts" in listed.text
    assert "vector" in listed.text


def test_a_runner_up_that_is_ahead_is_called_so_with_the_sign_of_the_table():
    """The document has the choice less the runner-up: -0.012 [-0.03, 0.006] is a lead of 0.012 [-0.006, 0.03]."""
    told = _parted({"mean": -0.012, "low": -0.03, "high": 0.006, "parted": False})
    assert told == "which these queries cannot tell apart: ahead on these labels by 0.012 [-0.006, +0.030]"
    told = _parted({"mean": 0.02, "low": 0.01, "high": 0.03, "parted": True})
    assert told == "which these queries tell apart: behind by 0.020 [+0.010, +0.030]"


@pytest.mark.parametrize(("badge", "answer"), [("keep", "Keep your bm25: nothing beats it."),
                                               ("ship", "Ship: your bm25: nothing beats it.")])  # fmt: skip
def test_the_word_on_the_badge_is_not_said_again(badge, answer):
    assert Page("", badge, answer, {}, ()).told == "your bm25: nothing beats it."


@pytest.mark.parametrize(("verdict", "name"), [("try", "worth trying"), ("keep", "tried elsewhere")])
def test_what_is_not_recommended_is_not_called_worth_trying(verdict, name):
    public = {"near": "bm25", "default": "fts", "better": 5, "collections": 10, "mean": -0.01, "worst": -0.1}
    (shown,) = promised({"verdict": verdict, "public": public, "labelled": 0})
    assert dict(shown.pairs)[name] == "fts"
