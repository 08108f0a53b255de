"""The first queries of a data set: from its log, or by hand and not copied."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from written_set import write_set

from steelyard.memory.entry import Entry
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.notebook.label.apply import copied, logged_queries

ENTRY = Entry("a", title="Keyset cursors", text="Deep pages read and threw away fifty thousand rows every time.")


@pytest.mark.parametrize(
    ("text", "is_copied"),
    [
        ("threw away fifty thousand", True),  # four in a row
        ("cursors pages rows thousand", True),  # all of its words
        ("why is the list so slow far down", False),
        ("rows", False),  # one word is no copy
        ("slow list with many rows", False),
    ],
)
def test_what_repeats_the_entry_is_copied(text, is_copied):
    assert copied(text, ENTRY) is is_copied


def test_queries_of_a_log_are_drawn_once_each():
    found = logged_queries(load(starter()))

    assert 0 < len(found) <= 20
    assert len({text.lower() for text in found}) == len(found)
    assert logged_queries(load(starter())) == found
    assert logged_queries(replace(load(starter()), feedback=None)) == []


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path, [ENTRY.text] * 6)


def test_the_command_helps_to_write_queries_refuses_copies_and_goes_on_to_judge(folder):
    keys = "threw away fifty thousand\nslow lists with many rows\n\nwhat was thrown away\nq\nq"
    found = CliRunner().invoke(
        main, ["judge", str(folder), "--out", str(folder / "j"), "--embedder", "none"], input=keys
    )

    assert found.exit_code == 0, found.output
    assert "search by words" in found.stderr
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["slow lists with many rows", "what was thrown away"]


def test_a_key_is_no_query_and_u_takes_the_last_one_back(folder):
    keys = "u\n?\n0\nslow lists with many rows\nu\nu\n列表\nq\nq"
    found = CliRunner().invoke(
        main, ["judge", str(folder), "--out", str(folder / "j"), "--embedder", "none"], input=keys
    )

    assert found.stderr.count("two letters") == 2
    assert found.stderr.count("no query to") == 2
    assert found.stderr.count("taken back: slow lists with many rows") == 1
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["列表"]


def test_what_was_typed_before_an_interruption_is_kept(folder):
    found = CliRunner().invoke(main, ["judge", str(folder)], input="what is this about\n")  # then the input ends
    assert found.exit_code == 130
    assert [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()] == [
        "what is this about"
    ]
