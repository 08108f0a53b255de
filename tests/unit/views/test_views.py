"""Every view of every kind of result: hostile text stays text, and numbers are those of the result."""

import base64
import itertools
import json
import zlib

import pytest

from steelyard.base.errors import DataError
from steelyard_eval.result import document
from steelyard_eval.result.structs import Estimate, Latency, Said, Table, replace
from steelyard_eval.views import latex, terminal
from steelyard_eval.views.frames import Answered, board_frame, frame_of
from steelyard_eval.views.report import write
from steelyard_eval.views.report.page import sections
from steelyard_eval.views.report.write import pack, piece
from steelyard_eval.views.sheets import sheets

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
    data = json.loads(zlib.decompress(base64.b64decode(pack(replace(made, queries=with_a), 10**6).text)))
    assert data["labels"] == ["x", "x2", "a"]


def test_a_report_does_not_send_its_reader_to_itself():
    """Three rows of one kind lose, and are not in the short table."""
    made = decided()
    many = replace(made, rows=[*made.rows, *(row(f"z{at}", 0.1, strategy="rrf(fts, vector)") for at in range(3))])
    board = next(section for section in sections(many, "0") if section.id == "leaderboard").blocks[0].sheet
    assert sheets(many, short=True)[0].legend and not board.legend


def test_sheets_have_the_numbers_of_the_result():
    contenders, tests, stale = sheets(result(), short=True)
    assert contenders.rows == (
        ("x (baseline)", "0.600 [0.550, 0.650]", "\u2013", "\u2013"),
        ("x2 (tuned here)", "0.700 [0.650, 0.750]", "0.25", "1"),
    )
    assert tests.rows == (("x2", "better", "+0.100 [+0.080, +0.120]", "0.0260", "0.1300", "27/21/11", "0.110"),)
    assert tests.words == ("better",)
    assert stale.rows == (("x", "3", "0.300 [0.100, 0.500]"),)


def test_further_metrics_have_columns_of_their_own():
    made = result(row("x", 0.6, means={"R@10": Estimate(0.3)}), row("y", 0.7, means={"R@10": Estimate(0.4)}))
    assert [cells[2] for cells in sheets(made, short=True)[0].rows] == ["0.300", "0.400"]


def test_a_decision_shows_gains_in_the_place_of_tests():
    (contenders, _) = sheets(decided(), short=True)
    assert [cells[2] for cells in contenders.rows] == ["+0.100 [+0.050, +0.150]", "\u2013"]
    assert contenders.rows[0][0] == "x2 (chosen, tuned here)"


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
    said = [Said("told", {"text": f"number {at}"}) for at in range(5)]
    made = result(notices=[*said, Said("lsa", {"kind": "minilm"})])
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
    assert Answered(made).tests().loc[0, ["challenger", "delta", "verdict", "p"]].tolist() == [
        "x2",
        0.1,
        "better",
        0.026,
    ]
    assert Answered(made).per_query().loc["q1", "x2"] == 0.1
    assert Answered(made).table().loc["x2", "nDCG@10 +"] == 27
    assert board_frame(decided()).loc[1, "gain"] == 0.1
    assert frame_of(made.tables[0]).loc[0].tolist() == ["x", 3, 0.3, 0.1, 0.5]


def test_layers_of_a_latency_are_read_again():
    timed = row("x", 0.5, cost=COST.__class__(latency=Latency(1.0, layers={"l0": Latency(0.5)}, degraded=2)))
    made = result(timed, tables=[Table("layers", ["layered", "queries"], [["x", 3]])])
    assert document.read(document.render(made).encode()) == made


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d | {"version": 1}, "version"),
        (lambda d: {k: v for k, v in d.items() if k != "version"}, "version"),
        (lambda d: d | {"kind": "other"}, r"\$.kind"),
        (lambda d: d | {"rows": [d["rows"][0] | {"means": {"nDCG@10": {"mean": "0.5"}}}]}, r"rows\[0\]"),
        (lambda d: d | {"rows": [d["rows"][0], d["rows"][0]]}, "2 rows"),
        (lambda d: d | {"provenance": d["provenance"] | {"baseline": "nobody"}}, "nobody"),
        (lambda d: d | {"answer": d["answer"] | {"key": "none"}}, "none"),
        (lambda d: d | {"answer": {"key": "better", "facts": {}}}, "better"),
        (lambda d: d | {"answer": d["answer"] | {"facts": {"choice": 1}}}, "better"),
        (lambda d: {k: v for k, v in d.items() if k != "answer"}, "answer"),
        (lambda d: [d], "object"),
    ],
)
def test_a_document_of_others_is_refused_with_its_place(change, told):
    with pytest.raises(DataError, match=told):
        document.read(json.dumps(change(json.loads(document.render(result())))).encode())


def test_a_field_of_a_later_version_is_passed_over():
    record = json.loads(document.render(result()))
    assert document.read(json.dumps({**record, "later": {"a": 1}}).encode()) == result()


@pytest.mark.parametrize("text", [b'{"a": NaN}', b"[" * 100_000, b"\xff", b"", b'{"version": 1e999}'])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(DataError):
        document.read(text)
