"""Tables for papers, beside one written by hand, and what a result writes by the suffix of a file's name."""

import os
from pathlib import Path

import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, MachineError
from steelyard_eval.result.structs import DataFacts, Decision, Estimate, Provenance, replace
from steelyard_eval.views.latex import render

from .made import paired, result, row

TABLE = Path(__file__).with_name("table.tex").read_text("utf-8")


def made(label="vector", **facts):
    """0.49995 is printed as 0.500, as the best is; one row has no R@10."""
    rows = [
        row("fts", 0.4, means={"R@10": Estimate(0.1)}),
        row("a&b", 0.5, paired(0.1, "better"), means={"R@10": Estimate(0.3)}),
        row("rrf(bm25, 0.5*vector)", 0.49995, paired(0.1)),
        row(label, 0.35, paired(-0.05, "worse"), means={"R@10": Estimate(0.2)}),
    ]
    about = Provenance(
        "t", DataFacts("work_shop", judged=40), metrics=["nDCG@10", "R@10"], baseline="fts", limit=10
    )
    return result(*rows, **{"provenance": about, **facts})


def test_a_table_is_that_of_a_paper():
    """Both that are printed as the best are bold, and the second best is 0.400."""
    assert render(made()) == TABLE


def test_a_star_marks_what_was_chosen_and_the_caption_says_what_it_gains():
    decision = Decision("ship", "a&b", Estimate(0.08, -0.01, 0.17))
    told = render(made(kind="recommend", decision=decision))
    assert told.count(r"\star") == 2
    assert r"a\&b$^{\star}$ & \textbf{0.500}$^{\blacktriangle}$" in told
    assert "$+0.080$ nDCG@10 [$-$0.010," in told
    assert "+0.080" not in render(made(kind="recommend", decision=replace(decision, chosen=None)))
    assert told.count("tab:work-shop-recommend}") == 2  # beside that of a comparison in one paper


def test_what_nobody_asked_for_and_a_paper_would_explain_is_left_out():
    metrics = ["nDCG@10", "R@10", "RecallAll@10", "Judged@10"]
    about = Provenance("t", DataFacts("starter", path="sets/mine"), metrics=metrics, baseline="fts")
    told = render(made(provenance=about))
    assert r"nDCG@10 & R@10" in told
    assert "queries of mine." in told and "tab:mine-compare" in told
    named = replace(about, named=["nDCG@10", "RecallAll@10"])
    assert r"System & nDCG@10 & RecallAll@10 \\" in render(made(provenance=named))


def test_neither_the_loser_of_two_nor_coverage_is_marked():
    rows = [row(name, mean, means={"Judged@10": Estimate(mean)}) for name, mean in (("fts", 0.4), ("vector", 0.3))]
    about = Provenance("t", DataFacts("x"), named=["nDCG@10", "Judged@10"], metrics=["nDCG@10"], baseline="fts")
    told = render(result(*rows, provenance=about))
    assert "\\textbf{0.400} & 0.400" in told
    assert "0.300 & 0.300" in told


@pytest.mark.parametrize(("label", "line"), [("[1cm]", "{}[1cm] &"), ("*x", "{}*x &"), ("x[*]", "x[*] &")])
def test_a_label_is_no_argument_of_the_line_before(label, line):
    r"""LaTeX looks for `*` and `[` after `\\\\`, over the end of the line."""
    assert f"\n{line}" in render(made(label))


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
    for name in ("link", "pipe"):
        with pytest.raises(MachineError):
            found.save(tmp_path / f"{name}.parquet")
    assert not (tmp_path / "nowhere").exists()


def test_a_result_without_means_and_tables_has_no_table():
    with pytest.raises(ConfigError, match=r"name a \.json"):
        render(made(rows=[], tables=[]))
