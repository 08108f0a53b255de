"""A step in a terminal can be done by copying it."""

from steelyard_eval.common.console import step_text

LONG = f"steelyard recommend /home/{'deep/' * 30}notes --current 'rrf(bm25, vector)'"


def test_a_command_stays_on_one_line_whatever_its_length(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert step_text("decide by these labels", LONG) == (f"decide by these labels:\n    {LONG}")
    assert step_text("", LONG) == f"    {LONG}"


def test_words_alone_are_folded_and_short_steps_stay_on_a_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert step_text("search", "steelyard search") == "search: steelyard search"
    assert max(map(len, step_text("words " * 30, "").split("\n"))) <= 60
