"""Tables that fit, text that is folded, colour where there is a terminal."""

import io
import sys
import unicodedata

import pytest

from steelyard_eval.common import console
from steelyard_eval.common.console import cut, folded, isolated, table, with_colours, wrapped
from steelyard_eval.common.formatting import clip, columns_of

ROWS = [{"name": "alpha beta gamma delta epsilon zeta", "n": 1.5}, {"name": "b", "n": None}]


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestLayout:
    def test_a_table_by_hand_is_folded_before_it_is_split(self):
        assert table(ROWS, {"name": "", "n": "number"}).splitlines() == [
            "                                     number",
            "-----------------------------------  ------",
            "alpha beta gamma delta epsilon zeta    1.50",
            "b                                         -",
        ]
        folded_to_40 = table(ROWS, {"name": "", "n": "number"}, 40).splitlines()[2:]
        row, rest = "alpha beta gamma delta epsilon      1.50", "b                                      -"
        assert folded_to_40 == [row, "zeta", rest]
        # what cannot be folded enough is split behind its first column
        found = table([{"a": "x", "b": 1, "c": 2}], {"a": "", "b": "bbbbbbbb", "c": "cccccccc"}, 16).split("\n\n")
        pages = [page.splitlines() for page in found]
        shown = [page[0].split() + page[2].split() for page in pages]
        assert shown == [["bbbbbbbb", "x", "1"], ["cccccccc", "x", "2"]]

    def test_in_a_pipe_a_row_is_one_line(self, monkeypatch):
        rows = [{"name": "word " * 60 + f"end of {at}", "why": "because " * 20, "n": 1} for at in range(2)]
        monkeypatch.delenv("COLUMNS", raising=False)
        assert [line.count("end of") for line in table(rows).splitlines()] == [0, 0, 1, 1]
        monkeypatch.setenv("COLUMNS", "80")
        assert max(map(len, table(rows).splitlines())) == 80

    def test_a_table_is_split_before_a_name_is_folded_that_takes_two_fifths_of_it(self):
        """A name of 28 characters in 80 columns: with two more of 20 and 23 it takes 75, with a fourth of 5 82,
        and folded to 26 it would fit.
        """
        row = {"a": "weighted sum, tuned (chosen)", "b": "1" * 20, "c": "2" * 23, "d": "3" * 5}
        pages = [page.splitlines()[2] for page in table([row], None, 80).split("\n\n")]
        assert pages == ["  ".join(row[name] for name in names) for names in ("abc", "ad")]

    def test_hostile_cells_and_headings_are_made_visible(self):
        found = table([{"a": "x\x1b[31m\ny"}], {"a": "h\x1b"})
        assert "\x1b" not in found
        assert len(found.splitlines()) == 3

    def test_a_path_is_folded_neither_at_its_hyphens_nor_in_a_part(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        path = "/home/ann/some-long-folder/and-another-one/search-weights.json"
        lines = ["error: no file", f"  {path}", "  is there"]
        assert folded(f"error: no file {path} is there").splitlines() == lines

    @pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_colour_is_for_terminals_that_want_it(self, monkeypatch, variable, value):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stdout", Terminal())  # here: pytest sets its own before every test
        assert with_colours("better", "better") == "\x1b[32mbetter\x1b[0m"
        assert "\x1b[31mworse  \x1b[0m" in table([{"v": "worse"}], {"v": "verdict"})
        monkeypatch.setenv(variable, value)
        assert with_colours("better", "better") == "better"

    def test_messages_are_folded_and_commands_stay_whole(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        command = "steelyard compare mine 'rrf(bm25, vector; x)' " + "x" * 50 + " -k 5"
        words = " ".join(["word"] * 16)
        lines = [words, "  word:", f"    {command}", f"  or {words[:74]}", "  word"]
        assert folded(f"{words} word: {command}, or {words}").splitlines() == lines
        lines = [words, "    steelyard check mine --accept"]
        assert folded(f"{words} (steelyard check mine --accept).").splitlines() == lines
        monkeypatch.delenv("COLUMNS")
        assert folded(f"{words} {words}") == f"{words} {words}"  # in a pipe


class TestScripts:
    """Han takes two columns of a terminal, a combining mark none."""

    HAN, THAI, HEBREW, FAMILY = "数据库备份", "สคริปต์ที่นี่", "גיבוי לילי", "\U0001f469\u200d\U0001f467"

    def test_columns_are_as_wide_as_a_terminal_shows_their_cells(self):
        names = (self.HAN, self.THAI, self.HEBREW, self.FAMILY, "plain")
        lines = table([{"name": name, "n": 1} for name in names]).splitlines()
        assert lines[1] == "-" * 10 + "  -"
        assert {columns_of(line) for line in lines} == {13}
        assert [line[: -len(line.split()[-1])].rstrip() for line in lines[2:]] == list(names)

    @pytest.mark.parametrize("text", [HAN * 20, THAI * 20, f"a {HAN * 12}, {THAI * 9} b"])
    def test_lines_are_folded_and_cut_between_clusters(self, text, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        lines = wrapped(f"    {text}", 4).splitlines()
        assert {len(line) - len(line.lstrip()) for line in lines} == {4}
        assert max(map(columns_of, [*lines, cut(text, 40), clip(text, 40)])) <= 40
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert not [line for line in lines if unicodedata.category(line[4]) == "Mn"]

    def test_a_terminal_isolates_what_runs_from_right_to_left(self):
        one, other = (f"  1  {cell}  0.5\n{self.HAN}" for cell in (self.HEBREW, f"\u2068{self.HEBREW}\u2069"))
        assert isolated(one) == other


# Who sees what of progress: lines without a terminal, with a clock that the test moves


def test_a_line_every_ten_seconds_and_none_of_what_is_short(capsys):
    """Items of 1 s: of thirty ten and then twenty are done, of ten none is left."""
    for count, lines in ((30, ["10 of 30, about 20 s left", "20 of 30, about 10 s left"]), (10, [])):
        now = [500.0]
        for _ in console._progress_lines(range(count), "searching", lambda now=now: now[0]):
            now[0] += 1.0
        assert capsys.readouterr().err.splitlines() == [f"searching: {line}" for line in lines]


def test_whoever_has_no_terminal_gets_lines_and_a_notebook_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.delitem(console.sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(console, "_progress_bar", lambda items, label: "a bar")
    monkeypatch.setattr(console, "_progress_lines", lambda items, label: "lines")
    assert console.bar("asking", [1]) == "lines"
    monkeypatch.setitem(console.sys.modules, "ipykernel", None)
    assert console.bar("asking", [1]) == "a bar"
