"""Reports of a gate and of what was learned, from documents written out by hand."""

import html
import json
import re

import pytest

from steelyard.base.errors import DataError
from steelyard_eval.show.figures import gated
from steelyard_eval.show.report import load_results, write_report

from .test_report import Document, elements, explained, hostile, poisoned

AGAINST = {"date": None, "verdict": "fail", "reason": "tested", "delta": -0.042, "low": -0.078, "high": -0.007,
           "p_worse": 0.0049}  # fmt: skip
GATE = {
    "schema_version": 1, "kind": "gate", "tool": "steelyard 0.1.0", "dataset": {"name": "workshop", "entries": 9},
    "split": "all", "budget": 0.04, "check": "quality", "verdict": "fail", "sentence": "Fail: today got worse.",
    "baseline": {"path": "reports/baseline.json", "date": "2026-11-22", "because": "first",
                 "tool": "steelyard 0.1.0", "hashes": {}},
    "rebaseline": "steelyard gate workshop --update --because WHY", "notices": ["two queries have no labels"],
    "false_alarm_rate": 0.1, "power": {"drop": 0.05, "least": 0.92, "asleep": ["today"]},
    "findings": [{"contender": "today", "kind": "baseline", "verdict": "fail", "text": "-0.042 nDCG@10"}],
    "contenders": [
        {
            "label": "today", "strategy": "rrf(bm25, vector)", "verdict": "fail", "text": "-0.042 nDCG@10",
            "queries": 59, "lists_changed": 49, "metrics": [{"metric": "nDCG@10", "before": 0.67, "now": 0.628}],
            "against": [{"name": "baseline", **AGAINST}, {"name": "anchor", **AGAINST}],
            "slices": [{"field": "category", "value": "keyword", "queries": 7, "delta": -0.1, "p": 0.01,
                        "p_adjusted": 0.04, "worse": True}],
            "worst": [{"id": "q42", "text": "which version", "before": 0.918, "now": 0.521, "delta": -0.397,
                       "list_before": ["m1", "m2"], "list_now": ["m3", "m1"]}],
            "power": {"drop": 0.05, "caught": 0.92, "false_alarms": 0.1, "asleep": False},
        }
    ],
}  # fmt: skip
LEARN = {
    "schema_version": 1, "kind": "learn", "tool": "steelyard 0.1.0", "dataset": {"name": "workshop"},
    "verdict": "try", "sentence": "Try more weight on vectors.", "refusal": None,
    "current": {"label": "echovault", "strategy": "fts"}, "chosen": {"strategy": "vector"},
    "best": {"strategy": "vector", "gain": {}},
    "log": {"impressions": 16814, "queries": 590, "acts": 16121, "simulated": True, "span": "a week",
            "set_aside": [{"rule": "has no hits", "count": 3, "lines": [4, 7]}]},
    "policies": [{"name": "p1", "searches": 900, "how": "replayed", "agreement": 0.993}],
    "examination": {"exponent": 1.25, "error": 0.23, "source": "joint",
                    "text": "the tenth place counts as looked at 6% as often"},
    "acts": {"lift": 8.88, "relevant": [0.9, 0.4], "other": [0.1, 0.05],
             "kinds": [{"kind": "clicked", "count": 16121, "lift": 8.88}]},
    "views": [{"imputed": 1, "gain": 0.02, "error": 0.01, "refit_error": None}],
    "labels": {"queries": 40, "logged": 30, "others": 500, "share": 0.4, "worth": 55.0, "gain": 0.03,
               "error": 0.02, "both_gain": 0.025, "both_error": 0.009},
    "unseen": 0.08, "flip": 0.9, "effective_queries": 410.2, "candidates": 71,
    "warning": "Labels contradict acts.",
    "clients": {"count": 40, "largest": 0.1},
    "follows": [{"label": "bm25", "delta": 0.9, "low": 0.2, "high": 1.6}],
    "pieces": [{"part": "earlier half", "queries": 300, "gain": 0.02, "error": 0.01}],
}  # fmt: skip
both = pytest.mark.parametrize("document", [GATE, LEARN], ids=["gate", "learn"])


def written(document, folder):
    write_report(document, folder)
    return (folder / "report.html").read_text("utf-8"), (folder / "report.md").read_text("utf-8")


def test_a_gate_shows_what_got_worse_and_how_far_to_trust_it(tmp_path):
    for text in (Document(written(GATE, tmp_path)[0]).text, written(GATE, tmp_path)[1]):
        for shown in (
            "today got worse.", "0.670", "0.628", "-0.042 [-0.078, -0.007]", "0.0049", "49 of 59", "92%",
            "of today would pass", "category keyword", "which version", "was #1", "first",
        ):  # fmt: skip
            assert shown in text, shown
        assert "--update --because WHY" in text


def test_learning_shows_the_gain_in_every_view_and_the_log(tmp_path):
    page, markdown = written(LEARN, tmp_path)
    text = Document(page).text
    # 0.02 with two standard errors of 0.01: 1.96 * 0.01 to each side.
    assert "+0.020 [0.000, +0.040]" in text
    assert "+0.90 [+0.20, +1.60]" in text  # logarithms of odds, which pass 1
    for shown in (
        "16,814",
        "This log is simulated.",
        "looked at 6% as often",
        "8%",
        "has no hits",
        "Labels contradict acts.",
        "99.3%",
    ):
        assert shown in text, shown
        assert shown in markdown, shown


def test_an_anchor_that_is_the_baseline_has_no_row_of_its_own():
    row = GATE["contenders"][0]
    older = {"name": "anchor", **AGAINST, "delta": -0.06}
    for against, names in ((row["against"], ["today"]), ([row["against"][0], older], ["today", "today, anchor"])):
        (axes,) = gated({**GATE, "contenders": [{**row, "against": against}]}).axes
        assert [text.get_text() for text in axes.texts if "today" in text.get_text()] == names


@both
@hostile
def test_hostile_text_becomes_no_markup(document, tmp_path, poison):
    fixed = {"kind", "verdict"} & document.keys()
    evil = {**poisoned(document, poison), **{key: document[key] for key in fixed}}
    kind = {**poisoned(document, "harmless"), **{key: document[key] for key in fixed}}
    page, markdown = written(evil, tmp_path)
    assert elements(page) == elements(written(kind, tmp_path / "harmless")[0])
    assert page.count("<script") == 1
    assert not re.search(r"<[a-zA-Z/!?]", markdown)


@both
def test_a_report_json_loads_again_and_broken_ones_are_refused(document, tmp_path):
    write_report(document, tmp_path)
    assert load_results(tmp_path / "report.json") == document
    del (broken := json.loads(json.dumps(document)))["sentence"]
    with pytest.raises(DataError, match="must have sentence"):
        write_report(broken, tmp_path / "out")


@both
def test_every_column_is_in_the_glossary(document, tmp_path):
    page = written(document, tmp_path)[0]
    heads = {html.unescape(head) for head in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)}
    assert heads
    assert heads <= explained(page)


@pytest.mark.parametrize("budget", [{}, {"budget": None}])
def test_a_gate_may_leave_out_its_budget(tmp_path, budget):
    """Then the chart has no line for the drop that is accepted."""
    write_report({key: value for key, value in GATE.items() if key != "budget"} | budget, tmp_path)
    assert "Change of nDCG@10" in (tmp_path / "report.html").read_text("utf-8")
