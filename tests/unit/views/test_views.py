"""Every view of every kind of result: hostile text stays text, numbers are those of the result, every name draws.

Tables for papers are beside one written by hand."""

import base64
import functools
import itertools
import json
import operator
import os
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib import font_manager
from shared import tabled

import steelyard_eval as sy
from steelyard_eval.candidates.curve import COLUMNS, Curve, steps_of
from steelyard_eval.result import document, structs
from steelyard_eval.result.sentences import heading
from steelyard_eval.result.structs import DataFacts, Estimate, Latency, Message, Provenance, Table, replace
from steelyard_eval.views import latex, terminal
from steelyard_eval.views.drawing import canvas, plots
from steelyard_eval.views.drawing.canvas import picture
from steelyard_eval.views.figures import figures, gains
from steelyard_eval.views.frames import Answered, board_frame, frame_of
from steelyard_eval.views.report import write
from steelyard_eval.views.report.page import sections, widest
from steelyard_eval.views.report.write import pack, piece
from steelyard_eval.views.sheets import leading, sheets

from .made import COST, HOSTILE, decided, paired, result, row

KINDS = {"compare": result, "recommend": decided}


@pytest.mark.parametrize(
    ("view", "kind", "text"), list(itertools.product((terminal.render, piece, latex.render), KINDS, HOSTILE))
)
def test_every_view_shows_hostile_text_as_text(view, kind, text):
    shown = view(KINDS[kind](text=text))
    assert "\x1b" not in shown and "\u202e" not in shown
    if view is piece:
        assert "<script>" not in shown
    if view is latex.render:
        assert "\\input{/etc}" not in shown


@pytest.mark.parametrize(("kind", "text"), list(itertools.product(KINDS, HOSTILE)))
def test_a_report_shows_hostile_text_as_text(kind, text, tmp_path):
    files = {path.name: path.read_text("utf-8") for path in write(KINDS[kind](text=text), tmp_path)}
    assert "\x1b" not in "".join(files.values())
    assert "<script>alert" not in files["report.html"] + files["report.md"]
    assert "\n# head" not in files["report.md"]
    assert document.read(files["report.json"].encode()).answer == KINDS[kind](text=text).answer


def test_a_report_is_whole_and_leaves_out_what_differs_from_run_to_run(tmp_path):
    made = result()
    files = {path.name: path.read_text("utf-8") for path in write(made, tmp_path)}
    assert files.keys() == {"report.html", "report.md", "report.json"}
    assert document.read(files["report.json"].encode()).rows[1].cost.latency is None
    again = {path.name: path.read_text("utf-8") for path in write(made, tmp_path / "again")}
    assert again == files
    slower = result(*made.rows[:1], row("x2", 0.7, paired(0.1, "better"), tuned=True, cost=COST))
    assert document.render(slower) == document.render(made)


def test_a_report_first_shows_the_lists_of_today_and_of_the_choice():
    """A document has its keys in the order of letters: `a` is neither."""
    made = decided()
    with_a = [replace(query, lists={"a": query.lists["x"], **query.lists}) for query in made.queries]
    whole = pack(replace(made, queries=with_a), 10**6)
    assert json.loads(zlib.decompress(base64.b64decode(whole.text)))["labels"] == ["x", "x2", "a"]
    note = heading("less_room", {"count": 2, "total": 3, "places": None, "both": False})
    assert (whole.note, pack(replace(made, queries=with_a), len(whole.text) - 1).note) == ("", note)


def test_a_report_does_not_send_its_reader_to_itself():
    """Three rows of one kind lose, and are not in the short table."""
    made = decided()
    many = replace(made, rows=[*made.rows, *(row(f"z{at}", 0.1, strategy="rrf(fts, vector)") for at in range(3))])
    board = next(section for section in sections(many, "0") if section.id == "leaderboard").blocks[0].sheet
    assert sheets(many, short=True)[0].legend and not board.legend
    shown = [section.id for section in sections(result(), "0") if not section.folded]
    assert shown == ["leaderboard", "differences", "notices"]


def test_sheets_have_the_numbers_of_the_result():
    contenders, tests, stale = sheets(result(), short=True)
    assert contenders.rows == (
        ("x (baseline)", "0.600 [0.550, 0.650]", "\u2013", "\u2013"),
        ("x2 (in-sample)", "0.700 [0.650, 0.750]", "0.25", "1"),
    )
    assert tests.rows == (("x2", "better", "+0.100 [+0.080, +0.120]", "0.0260", "0.1300", "27/21/11", "0.110"),)
    assert tests.words == ("better",)
    assert stale.rows == (("x", "3", "0.300 [0.100, 0.500]"),)


def test_a_short_table_has_the_baseline_the_choice_and_the_best_eight():
    rows = [row("x", 0.1), *(row(f"y{at}", 0.9 - at / 20) for at in range(10))]
    assert [one.label for one in leading(result(*rows))] == [*(f"y{at}" for at in (*range(8), 9)), "x"]


def test_further_metrics_have_columns_of_their_own():
    made = result(row("x", 0.6, means={"R@10": Estimate(0.3)}), row("y", 0.7, means={"R@10": Estimate(0.4)}))
    assert [cells[2] for cells in sheets(made, short=True)[0].rows] == ["0.300", "0.400"]


def test_a_decision_shows_gains_in_the_place_of_tests():
    (contenders, _) = sheets(decided(), short=True)
    assert [cells[2] for cells in contenders.rows] == ["+0.100 [+0.050, +0.150]", "\u2013"]
    assert contenders.rows[0][0] == "x2 (chosen, in-sample)"


def test_a_short_table_has_the_choice_what_is_used_today_the_best_other_and_what_everybody_knows():
    rows = [row(f"r{at:02}", 0.9 - at / 100, gain=Estimate(0.1)) for at in range(20)]
    rows += [row("x", 0.5), row("x2", 0.6), row("vector", 0.4), row("bm25", 0.3)]
    made = decided()
    made = result(*rows, kind="recommend", decision=made.decision, provenance=made.provenance)
    (contenders, *_) = sheets(made, short=True)
    assert [cells[0].split()[0] for cells in contenders.rows] == ["r00", "x2", "x", "vector", "bm25"]
    assert "19" in contenders.legend
    assert len(sheets(made)[0].rows) == 24
    assert "r19" not in terminal.render(made)
    assert "r19" in terminal.render(made, full=True)


def test_notes_are_few_and_those_of_the_data_set_come_last():
    said = [Message("plain_text", {"text": f"number {at}"}) for at in range(5)]
    made = result(notices=[*said, Message("lsa", {"kind": "minilm"})])
    first = terminal.noted(made)
    assert [text for text in first if "number" in text] == ["number 0", "number 1"]
    assert "LSA" in first[0]
    assert "3" in first[3]
    assert len(terminal.noted(made, full=True)) == 6


def test_a_command_is_quoted_and_stands_on_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = terminal.render(result(text="a long name with spaces in it, and more"))
    assert "    steelyard judge 'a long name with spaces in it, and more'" in shown.splitlines()


def test_frames_have_numbers():
    made = result()
    assert Answered(made).to_frame()[["label", "metric", "mean", "low"]].values.tolist() == [
        ["x", "nDCG@10", 0.6, pytest.approx(0.55)],
        ["x2", "nDCG@10", 0.7, pytest.approx(0.65)],
    ]
    test = Answered(made).tests().loc[0, ["challenger", "delta", "verdict", "p"]].tolist()
    assert test == ["x2", 0.1, "better", 0.026]
    assert Answered(made).per_query().loc["q1", "x2"] == 0.1
    assert Answered(made).table().loc["x2", "nDCG@10 +"] == 27
    assert board_frame(decided()).loc[1, "gain"] == 0.1
    assert frame_of(made.tables[0]).loc[0].tolist() == ["x", 3, 0.3, 0.1, 0.5]


def test_layers_of_a_latency_are_read_again():
    timed = row("x", 0.5, cost=COST.__class__(latency=Latency(1.0, layers={"l0": Latency(0.5)}, degraded=2)))
    made = result(timed, tables=[Table("layers", ["layered", "queries"], [["x", 3]])])
    assert document.read(document.render(made).encode()) == made


@tabled
def test_a_document_of_others_is_refused_with_its_place(place, value, told):
    found = {"": json.loads(document.render(result()))}
    *way, last = ["", *place]
    holder = functools.reduce(operator.getitem, way, found)
    holder[last] = value
    if value is None:
        del holder[last]
    with pytest.raises(sy.DataError, match=told):
        document.read(json.dumps(found[""]).encode())


def test_a_field_of_a_later_version_is_passed_over():
    record = json.loads(document.render(result()))
    assert document.read(json.dumps({**record, "later": {"a": 1}}).encode()) == result()


@pytest.mark.parametrize("text", [b'{"a": NaN}', b"[" * 100_000, b"\xff", b"", b'{"version": 1e999}'])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(sy.DataError):
        document.read(text)


@pytest.fixture(scope="module")
def comparison(data):
    return data.compare("fts, bm25, echovault", current="fts", timed=False)


@pytest.mark.parametrize("what", ["means", "differences", "queries", "categories"])
def test_a_comparison_draws_every_figure(comparison, what):
    (axes,) = comparison.plot(what=what).axes
    assert axes.get_xlabel()


def test_differences_are_drawn_where_the_document_has_them(comparison):
    (axes,) = comparison.plot(what="differences").axes
    drawn = {line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert drawn == {row.against.gain.mean for row in comparison.result.rows if row.against}


def test_a_query_without_a_value_of_one_side_has_no_bar(comparison):
    first, *others = comparison.result.queries
    one_sided = [replace(first, values=values) for values in ({}, {"fts": 0.5}, {"bm25": 0.5})]
    (axes,) = figures(replace(comparison.result, queries=[*one_sided, *others]))["queries"]().axes
    assert len(axes.patches) == 2 * len(others)  # gains and losses


def test_categories_that_are_all_too_small_to_test_have_no_figure(comparison):
    """The report of such a comparison failed."""
    result = comparison.result
    (table,) = [table for table in result.tables if table.key == "categories"]
    small = replace(table, rows=[[*row[:-2], None, None] for row in table.rows])
    assert "categories" in figures(result)
    assert "categories" not in figures(replace(result, tables=[small]))


def test_a_curve_falls_where_its_value_does():
    """By hand: two steps, 0.86 below the weight 0.442 and 0.846 above it, of a sum with the total 0.5."""
    rows = steps_of(Curve(np.array([0.0, 0.884, 1.0]), np.array([0.86, 0.846]), (0.8, 0.8)), 0.5)
    steps = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    assert [point["weight"] for point in steps] == pytest.approx([0.221, 0.471])
    (axes,) = plots.curve(steps, "nDCG@10").axes
    line = axes.lines[0]
    # joined as they are: a step between two points is drawn at no other place
    assert line.get_drawstyle() == "default"
    assert line.get_xdata() == pytest.approx([0.0, 0.442, 0.442, 0.5])
    assert line.get_ydata() == pytest.approx([0.86, 0.86, 0.846, 0.846])


def test_a_figure_is_as_wide_as_a_column_and_its_fonts_are_embedded_as_truetype(tmp_path):
    figure = plots.places({"a": [1.0, 0.5]}, "place", "value")
    assert figure.get_size_inches()[0] == canvas.WIDTH == 3.5
    with canvas.styled():
        figure.savefig(tmp_path / "a.pdf")
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()


def test_labels_of_every_script_fit_and_ask_for_no_font_that_is_not_here(recwarn):
    assert canvas.fitted("数据库สคริปต์बैकअप" * 9, 1.0).endswith("…")
    with canvas.styled():
        text = plots.places({"สคริปต์": [1.0, 0.5]}, "数据库", "value").axes[0].xaxis.label
    assert set(text.get_fontfamily()[1:]) <= set(font_manager.get_font_names())
    assert not recwarn.list


@pytest.mark.parametrize("text", ["<b>&amp; $x$ ]]> --> \u202e", "url(#x) #0b4f8a"])
def test_a_picture_holds_no_markup_of_its_texts_and_the_same_bytes_each_time(text):
    one, other = (picture(plots.spans([plots.Span(text, 0.1, 0.0, 0.2)], text, 0.0), "t") for _ in range(2))
    assert one == other
    root = ElementTree.fromstring(str(one.svg))  # noqa: S314 -- what matplotlib wrote
    shown = "".join(root.itertext())
    assert text.replace("\u202e", r"\u202e").split(" ")[0] in shown
    assert "\u202e" not in shown
    assert not re.search(r"\bid=\"(?![pm][0-9a-f]+\")|xlink|xmlns:|http|<!--", str(one.svg))


TABLE = Path(__file__).with_name("table.tex").read_text("utf-8")


def paper(label="vector", **facts):
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
    assert latex.render(paper()) == TABLE


def test_a_star_marks_what_was_chosen_and_the_caption_says_what_it_gains():
    decision = structs.Decision("ship", "a&b", Estimate(0.08, -0.01, 0.17))
    told = latex.render(paper(kind="recommend", decision=decision))
    assert told.count(r"\star") == 2
    assert r"a\&b$^{\star}$ & \textbf{0.500}$^{\blacktriangle}$" in told
    assert "$+0.080$ nDCG@10 [$-$0.010," in told
    assert "+0.080" not in latex.render(paper(kind="recommend", decision=replace(decision, chosen=None)))
    assert told.count("tab:work-shop-recommend}") == 2  # beside that of a comparison in one paper


def test_what_nobody_asked_for_and_a_paper_would_explain_is_left_out():
    metrics = ["nDCG@10", "R@10", "RecallAll@10", "Judged@10"]
    about = Provenance("t", DataFacts("starter", path="sets/mine"), metrics=metrics, baseline="fts")
    told = latex.render(paper(provenance=about))
    assert r"nDCG@10 & R@10" in told
    assert "queries of mine." in told and "tab:mine-compare" in told
    named = replace(about, named=["nDCG@10", "RecallAll@10"])
    assert r"System & nDCG@10 & RecallAll@10 \\" in latex.render(paper(provenance=named))


def test_neither_the_loser_of_two_nor_coverage_is_marked():
    rows = [row(name, mean, means={"Judged@10": Estimate(mean)}) for name, mean in (("fts", 0.4), ("vector", 0.3))]
    about = Provenance("t", DataFacts("x"), named=["nDCG@10", "Judged@10"], metrics=["nDCG@10"], baseline="fts")
    told = latex.render(result(*rows, provenance=about))
    assert "\\textbf{0.400} & 0.400" in told
    assert "0.300 & 0.300" in told


@pytest.mark.parametrize(("label", "line"), [("[1cm]", "{}[1cm] &"), ("*x", "{}*x &"), ("x[*]", "x[*] &")])
def test_a_label_is_no_argument_of_the_line_before(label, line):
    r"""LaTeX looks for `*` and `[` after `\\\\`, over the end of the line."""
    assert f"\n{line}" in latex.render(paper(label))


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
        with pytest.raises(sy.MachineError):
            found.save(tmp_path / f"{name}.parquet")
    assert not (tmp_path / "nowhere").exists()


def test_a_result_without_means_and_tables_has_no_table():
    with pytest.raises(sy.ConfigError, match=r"name a \.json"):
        latex.render(paper(rows=[], tables=[]))


def test_a_page_has_the_facts_of_a_baseline_as_terms_and_any_other_table_as_a_table():
    made = result(tables=[Table("gate_file", ["path"], [["b.json"]]), Table("gate_check", ["part"], [["lists"]])])
    kinds = {section.id: section.blocks[0].kind for section in sections(made, "0" * 64)}
    assert (kinds["gate_file"], kinds["gate_check"]) == ("terms", "table")
    assert list(widest(replace(made, rows=[]))) == []


@pytest.mark.parametrize(("refit", "error"), [(0.04, 0.05), (None, 0.03)])
def test_the_error_of_a_gain_has_that_of_refitting(refit, error, monkeypatch):
    """By Pythagoras, 0.03 and 0.04; twice 1.96 errors between the ends."""
    rows = [["by_labels", 5, 0.1, 0.03, refit]]
    table = Table("gains", ["by", "queries", "gain_by", "error", "refit"], rows)
    monkeypatch.setattr("steelyard_eval.views.figures.difference", lambda around, *_: around)
    monkeypatch.setattr("steelyard_eval.views.figures.spans", lambda found, *_: found)
    (around,) = gains(result(tables=[table]), table)
    assert around.high - around.low == pytest.approx(2 * 1.96 * error, rel=1e-3)
