"""Tables that fit, text that is folded, colour where there is a terminal."""

import io
import sys

import pytest

from steelyard.memory.entry import Entry, Hit
from steelyard_eval.cli.vault_text import hits
from steelyard_eval.common.console import brief, folded, painted, table, width, wrapped

ROWS = [{"name": "alpha beta gamma delta epsilon zeta", "n": 1.5}, {"name": "b", "n": None}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_by_hand():
    assert table(ROWS, {"name": "", "n": "number"}) == "\n".join(
        (
            "                                     number",
            "-----------------------------------  ------",
            "alpha beta gamma delta epsilon zeta    1.50",
            "b                                         -",
        )
    )


def test_text_is_folded_before_the_table_is_split():
    assert table(ROWS, {"name": "", "n": "number"}, 40).splitlines()[2:] == [
        "alpha beta gamma delta epsilon      1.50",
        "zeta",
        "b                                      -",
    ]


def test_a_table_that_cannot_be_folded_enough_is_split_behind_its_first_column():
    found = table([{"a": "x", "b": 1, "c": 2}], {"a": "", "b": "bbbbbbbb", "c": "cccccccc"}, 16)
    assert [page.splitlines()[0].split() for page in found.split("\n\n")] == [["bbbbbbbb"], ["cccccccc"]]
    assert [page.splitlines()[2].split() for page in found.split("\n\n")] == [["x", "1"], ["x", "2"]]


def test_in_a_pipe_a_row_is_one_line(monkeypatch):
    rows = [{"name": "word " * 60 + f"end of {at}", "why": "because " * 20, "n": 1} for at in range(2)]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert [line.count("end of") for line in table(rows).splitlines()] == [0, 0, 1, 1]
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, table(rows).splitlines())) == 80


def test_a_table_is_split_before_a_name_is_folded_that_takes_two_fifths_of_it():
    """A name of 28 characters in 80 columns: with two more columns of 20 and 23 it takes 75, with a fourth of 12
    89."""
    row = {"a": "weighted sum, tuned (chosen)", "b": "1" * 20, "c": "2" * 23, "d": "3" * 12}
    pages = [page.splitlines() for page in table([row], None, 80).split("\n\n")]
    assert [page[2] for page in pages] == [
        "  ".join([row["a"], row["b"], row["c"]]),
        "  ".join([row["a"], row["d"]]),
    ]


def test_no_rows_are_a_heading():
    assert table([], {"a": "name"}) == "name\n----"


def test_hostile_cells_and_headings_are_made_visible():
    found = table([{"a": "x\x1b[31m\ny"}], {"a": "h\x1b"})
    assert "\x1b" not in found
    assert len(found.splitlines()) == 3


def test_the_width_is_that_of_the_terminal_or_a_hundred(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width() == 100
    monkeypatch.setenv("COLUMNS", "72")
    assert width() == 72
    monkeypatch.setenv("COLUMNS", "3")
    assert width() == 40


def test_long_lines_are_folded_and_indented(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert wrapped("tuned:   " + "word " * 10, 9).splitlines() == [
        "tuned:   word word word word word word",
        "         word word word word",
    ]


def test_a_path_is_folded_neither_at_its_hyphens_nor_in_a_part(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    path = "/home/ann/some-long-folder/and-another-one/search-weights.json"
    assert folded(f"error: no file {path} is there").splitlines() == ["error: no file", f"  {path}", "  is there"]


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_for_terminals_that_want_it(monkeypatch, variable, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())  # here: pytest sets its own before every test
    assert painted("better", "better") == "\x1b[32mbetter\x1b[0m"
    assert "\x1b[31mworse  \x1b[0m" in table([{"v": "worse"}], {"v": "verdict"})
    monkeypatch.setenv(variable, value)
    assert painted("better", "better") == "better"


def test_there_is_no_colour_in_files():
    assert painted("better", "better", io.StringIO()) == "better"


def test_half_lives_are_read_in_four_digits():
    assert brief("recency(half_life=68.96756393652842h)") == "recency(half_life=68.97h)"
    assert brief("weighted_sum(0.123456789*fts, 1*vector)") == "weighted_sum(0.123456789*fts, 1*vector)"


def test_a_column_is_no_narrower_than_the_longest_word_of_its_head():
    """30 characters that cannot be folded and 50 that can to 26, in 58: two spaces lie between them."""
    lines = table([{"a": "x", "b": "word " * 10}], {"a": "h" * 30, "b": ""}, 58).splitlines()
    assert lines[1] == f"{'-' * 30}  {'-' * 26}"


def test_of_a_long_text_a_hit_shows_four_lines():
    lines = hits([Hit(1, 0.5, Entry("a", text="word " * 200))]).splitlines()
    assert [line.strip().startswith("word") for line in lines] == [False, True, True, True, True]
    assert lines[-1].endswith(" ...")


def test_a_title_that_does_not_fit_ends_in_dots(monkeypatch):
    """16 characters stand before the title, so 64 of 80 are left: twelve words of five and the dots."""
    monkeypatch.setenv("COLUMNS", "80")
    (head,) = hits([Hit(1, 0.5, Entry("a", title="word " * 15))]).splitlines()
    assert head == "  1  0.5000  a  " + "word " * 12 + "..."


def test_messages_are_folded_and_commands_stay_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    command = "steelyard compare mine 'rrf(bm25, vector; x)' " + "x" * 50 + " -k 5"
    words = " ".join(["word"] * 16)
    assert folded(f"{words} word: {command}, or {words}").splitlines() == [
        *(words, "  word:", f"    {command}"),
        *(f"  or {words[:74]}", "  word"),
    ]
    assert folded(f"{words} (steelyard check mine --accept).").splitlines() == [
        words,
        "    steelyard check mine --accept",
    ]
    monkeypatch.delenv("COLUMNS")
    assert folded(f"{words} {words}") == f"{words} {words}"  # in a pipe
