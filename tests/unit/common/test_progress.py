"""Who sees what of progress: lines without a terminal, with a clock that the test moves."""

import io
import logging

from steelyard_eval.common import console
from steelyard_eval.common.console import bar


def said(capsys, seconds, count):
    """What is written while each of `count` items takes `seconds`."""
    now = [0.0]
    for _ in console._progress_lines(range(count), "searching", lambda: now[0]):
        now[0] += seconds
    return capsys.readouterr().err.splitlines()


def test_a_line_every_ten_seconds(capsys):
    """Items of 1 s, so ten and then twenty of thirty are done."""
    assert said(capsys, 1.0, 30) == [
        "searching: 10 of 30, about 20 s left",
        "searching: 20 of 30, about 10 s left",
    ]


def test_nothing_is_said_of_what_is_short(capsys):
    assert said(capsys, 1.0, 10) == []


def test_whoever_has_no_terminal_gets_lines_and_a_notebook_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.delitem(console.sys.modules, "ipykernel", raising=False)
    assert not console._has_bar()
    monkeypatch.setitem(console.sys.modules, "ipykernel", None)
    assert console._has_bar()


def test_quiet_is_quiet(monkeypatch):
    monkeypatch.setattr(console.LOGGER, "level", logging.ERROR)
    console.LOGGER.manager._clear_cache()
    items = [1, 2]
    assert bar("searching")(items) is items
    monkeypatch.undo()
    console.LOGGER.manager._clear_cache()
