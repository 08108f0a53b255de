"""Tables for papers, beside one written by hand, and what a result writes by the suffix of a file's name."""

import json
import os

import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, MachineError
from steelyard_eval.datasets.starter import starter
from steelyard_eval.show.latex import latex
from steelyard_eval.show.report import write_report

from .test_report import compared, configuration, mean

TABLE = r"""% Needs \usepackage{booktabs,amssymb}; the text names it by Table~\ref{tab:work-shop-compare}.
\begin{table}
\centering
\caption{Means over 40 queries of work\_shop, lists of 10.
Best in bold, second best underlined.
$^{\blacktriangle}$ ($^{\blacktriangledown}$): better (worse) than fts in nDCG@10,
two-sided paired randomisation test, $p < 0.05$ after Holm's correction.}
\label{tab:work-shop-compare}
\begin{tabular}{lcc}
\toprule
System & nDCG@10 & R@10 \\
\midrule
fts & \underline{0.400} & 0.100 \\
\midrule
a\&b & \textbf{0.500}$^{\blacktriangle}$ & \textbf{0.300} \\
rrf(bm25, 0.5*vector) & \textbf{0.500} & -- \\
vector & 0.350$^{\blacktriangledown}$ & \underline{0.200} \\
\bottomrule
\end{tabular}
\end{table}
"""


def document():
    values = {
        "fts": (0.4, 0.1),
        "a&b": (0.5, 0.3),
        "rrf(bm25, 0.5*vector)": (0.49995, None),
        "vector": (0.35, 0.2),
    }
    return {
        "schema_version": 1, "split": "all", "limit": 10, "primary": "nDCG@10", "baseline": "fts",
        "dataset": {"name": "work_shop"}, "configurations": [configuration(label) for label in values],
        "results": [
            mean(label, value, metric)
            for label, own in values.items()
            for metric, value in zip(("nDCG@10", "R@10"), own, strict=True)
            if value is not None
        ],
        "comparisons": [
            compared("a&b", 0.1, "better"), compared("rrf(bm25, 0.5*vector)", 0.1, "too few queries to tell"),
            compared("vector", -0.05, "worse"),
        ],
    }  # fmt: skip


def test_a_table_is_that_of_a_paper():
    """0.49995 is printed as 0.500, as the best is, so both are bold and the second best is 0.400."""
    assert latex(document()) == TABLE


def test_marks_that_no_row_has_are_not_explained():
    told = latex({**document(), "comparisons": [compared("vector", -0.05, "too few queries to tell")]})
    assert "triangle" not in told
    assert "No system is significantly better or worse than fts in nDCG@10,\ntwo-sided" in told


def test_a_star_marks_what_was_chosen_and_the_caption_says_what_it_gains():
    recommended = {
        **document(), "leaderboard": [{"label": "a&b"}], "chosen": {"strategy": "a&b"}, "promise_stated": True,
        "promise": {"value": 0.08, "low": -0.01, "high": 0.17},
        "configurations": [configuration(one["label"], one["label"]) for one in document()["configurations"]],
    }  # fmt: skip
    told = latex(recommended)
    assert told.count(r"\star") == 2
    assert r"a\&b$^{\star}$ & \textbf{0.500}$^{\blacktriangle}$" in told
    assert (
        "after Holm's correction.\n"
        r"$^{\star}$: chosen; out of fold its gain is $+0.080$ nDCG@10 [$-$0.010, +0.170]." "\n"
        "Tuned rows were chosen on these queries, so their means are optimistic.}\n"
    ) in told  # fmt: skip
    assert r"$^{\star}$: chosen." in latex({**recommended, "promise_stated": False})
    assert told.count("tab:work-shop-recommend}") == 2  # beside that of a comparison in one paper


def test_what_was_tuned_on_these_queries_is_marked_and_the_caption_says_so():
    tuned = document()
    tuned["configurations"][1]["tuned"] = True
    told = latex(tuned)
    assert r"a\&b$^{\dagger}$ & \textbf{0.500}" in told
    assert "correction.\n" r"$^{\dagger}$: tuned on these queries, so its mean is optimistic.}" in told


def test_what_nobody_asked_for_and_a_paper_would_explain_is_left_out():
    metrics = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")
    usual = document() | {"results": [mean("fts", 0.4, metric) for metric in metrics], "comparisons": []}
    assert r"System & nDCG@10 & R@10 & RR@10 \\" in latex(usual)
    assert r"System & nDCG@10 & RecallAll@10 \\" in latex(usual | {"metrics": ["nDCG@10", "RecallAll@10"]})
    folder = latex(usual | {"dataset": {"name": "starter", "path": "sets/mine"}})
    assert "queries of mine, lists" in folder
    assert "tab:mine-compare" in folder


def test_a_table_has_the_metrics_that_were_named_and_no_other():
    """Judged@10 is measured beside what is named, and is no metric that was named."""
    named = "nDCG@10,RR@10,RecallAll@10,P@5,R@10"
    told = sy.load(starter()).compare("bm25, fts", metrics=named).to_latex()
    assert rf"System & {named.replace(',', ' & ')} \\" in told


def test_neither_the_loser_of_two_nor_coverage_is_marked():
    found = {**document(), "comparisons": [], "metrics": ["nDCG@10", "Judged@10"]}
    found["results"] = [
        mean(label, value, metric)
        for metric in ("nDCG@10", "Judged@10")
        for label, value in (("fts", 0.4), ("vector", 0.3))
    ]
    assert "fts & \\textbf{0.400} & 0.400" in latex(found)
    assert "vector & 0.300 & 0.300" in latex(found)


@pytest.mark.parametrize(("label", "line"), [("[1cm]", "{}[1cm] &"), ("*x", "{}*x &"), ("x[*]", "x[*] &")])
def test_a_label_is_no_argument_of_the_line_before(label, line):
    r"""LaTeX looks for `*` and `[` after `\\\\`, over the end of the line."""
    renamed = json.loads(json.dumps(document()).replace('"vector"', json.dumps(label)))
    assert f"\n{line}" in latex(renamed)
    unlabelled = sy.load({"a": "red"}, {"q": "red"}, {}).compare({label: "bm25", "fts": "fts"}, timed=False)
    assert f"\n{line}" in unlabelled.to_latex()


def test_a_parquet_file_is_written_whole_or_not_at_all(tmp_path):
    pytest.importorskip("pyarrow")
    found = sy.load({"corpus": {"a": "red"}, "queries": {"q": "red"}, "qrels": [("q", "a", 1)]}).compare(
        "bm25", timed=False
    )
    path = tmp_path / "new" / "out.parquet"
    found.save(path)
    assert pd.read_parquet(path).equals(found.to_frame())
    (tmp_path / "link.parquet").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.parquet")
    for name, rule in (("link", "a link to what is not there"), ("pipe", "not a regular file")):
        with pytest.raises(MachineError, match=rule):
            found.save(tmp_path / f"{name}.parquet")
    assert not (tmp_path / "nowhere").exists()


def test_a_result_without_means_has_no_table():
    with pytest.raises(ConfigError, match="no means of contenders"):
        latex({"results": []})
    unlabelled = sy.load({"a": "red"}, {"q": "red"}, {})
    with pytest.raises(ConfigError, match="no means of contenders"):
        unlabelled.recommend(timed=False).to_latex()


def test_ten_lines_are_enough_for_a_pull_request(tmp_path):
    write_report(document(), tmp_path)
    lines = (tmp_path / "summary.md").read_text("utf-8").splitlines()
    assert len(lines) <= 10
    assert lines[0] == "**Better: a&amp;b, best of 3, is +0.100 nDCG@10 over your fts.**"
    assert lines[2] == "| Search strategies on work_shop | nDCG@10 | difference | verdict |"
    assert lines[4].startswith("| 1\\. a&amp;b | 0.500 [0.450, 0.550] | +0.100 [+0.080, +0.120] | better |")
    # Of four the two best and, whatever its place, what they are compared with.
    assert [line.split(" | ")[0] for line in lines[4:]] == [
        "| 1\\. a&amp;b",
        "| 2\\. rrf(bm25, 0.5\\*vector)",
        "| 3\\. fts",
    ]


def test_a_summary_has_the_best_row_what_was_chosen_and_what_is_used_today(tmp_path):
    found = sy.load(starter()).recommend(current="fts", timed=False)
    record = found.to_json()
    rows = record["leaderboard"]
    at = next(at for at, row in enumerate(rows) if 1 < at < 6 and row["label"] != "fts")
    record["chosen"] = {**(record["chosen"] or {}), "strategy": rows[at]["strategy"]}
    first = next(row["label"] for row in rows if row["strategy"] == rows[at]["strategy"])

    write_report(record, tmp_path)

    told = (tmp_path / "summary.md").read_text("utf-8").replace("\\", "").splitlines()
    shown = [line.split(" | ")[0].split(". ", 1)[1] for line in told if line[:2] == "| " and line[2].isdigit()]
    assert shown == [rows[0]["label"], f"{first} (chosen)", "fts"]


def test_a_summary_says_what_to_do_and_how_it_ranks(tmp_path):
    steps = [
        {"what": "search with it", "command": "steelyard search VAULT QUERY"},
        {"what": "then measure", "command": ""},
    ]
    write_report(
        {**document(), "sentence": "Ship: it is better.", "steps": steps, "formula": "rrf(a, b)"}, tmp_path
    )
    lines = (tmp_path / "summary.md").read_text("utf-8").splitlines()
    assert lines[:6] == [
        "**Ship: it is better.**", "", "- search with it: `steelyard search VAULT QUERY`", "- then measure",
        "- the ranking: `rrf(a, b)`", "",
    ]  # fmt: skip


def test_the_suffix_of_a_name_says_what_is_written(tmp_path):
    found = sy.load(starter()).compare("fts, bm25", timed=False)
    for name in ("a.json", "a.tex", "a.parquet"):
        found.save(tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["primary"] == "nDCG@10"
    assert (tmp_path / "a.tex").read_text("utf-8") == found.to_latex() == latex(found.to_json())
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), found.to_frame())
