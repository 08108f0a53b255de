"""Queries to judge: drawn from a log, uniformly over distinct ones, or written by hand and not copied."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from shared import STARTER, contents, done, run, tabled, write_lines, write_set

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard_eval.datasets import load
from steelyard_eval.notebook.label import apply as write_queries
from steelyard_eval.notebook.label.apply import copied, drawn_from_log, logged_queries


def searched(at, text):
    known = {"schema_version": 1, "timestamp": "2026-01-01T00:00:00Z", "query_id": f"s{at}", "actions": []}
    return {**known, "user_query": text, "hits": [{"object_id": "e01", "position": 1}]}


def written(folder):
    """The texts of the queries in the data set."""
    return [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]


@pytest.fixture
def folder(tmp_path):
    """20 entries, one query of its own, and a log in which one of 30 questions makes half of the searches."""
    entries = [{"id": f"e{at:02}", "text": f"how to rotate the key number {at}"} for at in range(20)]
    asked = [f"rotate key {at}" for at in range(30)] + ["Rotate  KEY 0!"] * 30
    write_lines(tmp_path / "feedback.jsonl", [searched(at, text) for at, text in enumerate(asked)])
    return write_set(tmp_path, entries, ["rotate key 7"])


def test_each_question_is_as_likely_as_another(folder, monkeypatch):
    """Of 30 questions 3 are drawn 200 times: each 20 times, the loud one too; 4 standard deviations are 17."""
    monkeypatch.setattr(write_queries, "DRAWN", 3)
    monkeypatch.setattr(write_queries, "write_text", lambda *_: None)
    data = load(folder)
    counts = Counter(name for seed in range(200) for name in drawn_from_log(data, seed)[1])
    assert len(counts) == 30
    assert max(counts.values()) < 20 + 17


def test_new_questions_are_added_once_and_known_ones_keep_their_ids(folder):
    drawn = drawn_from_log(load(folder))[1]
    assert len(set(drawn)) == 30
    assert "q1" in drawn
    data = load(folder)
    assert sorted(query.id for query in data.queries) == sorted(drawn)
    assert drawn_from_log(data)[1] == drawn
    assert len(load(folder).queries) == 30


@pytest.mark.parametrize("text", ["is PGPASSWORD=quinoa55 right", "quinoa55 " * 222 + "abc"])
def test_a_question_with_a_secret_or_2001_characters_is_not_added(folder, text):
    before = len(drawn_from_log(load(folder))[1])
    with (folder / "feedback.jsonl").open("a") as log:
        log.write(json.dumps(searched(99, text)) + "\n")
    assert len(drawn_from_log(load(folder))[1]) == before
    assert "quinoa55" not in (folder / "queries.jsonl").read_text()


def test_a_sealed_data_set_draws_what_it_has(folder):
    """Its recorded vectors have a row for each query."""
    assert not write_queries.queries_are_fixed(load(folder))
    rows = len((folder / "queries.jsonl").read_text().splitlines())
    for side, count in (("corpus", len(load(folder).entries)), ("queries", rows)):
        np.save(folder / f"{side}.minilm.f16.npy", np.ones((count, 2), dtype=np.float16))
    assert write_queries.queries_are_fixed(load(folder))


def test_without_a_log_there_is_nothing_to_draw(folder):
    (folder / "feedback.jsonl").unlink()
    with pytest.raises(ConfigError, match="log with usable queries"):
        drawn_from_log(load(folder))


def test_the_command_says_how_many_more_decide(folder, tmp_path):
    words = ("bm25", "fts", "--from-log", "--embedder", "none", "--out", tmp_path / "j")
    found = run("judge", folder, *words, typed="1q")
    assert found.exit_code == 0, found.output
    said = " ".join(found.stdout.split())
    assert "query 1 of 15, about 150 pairs" in said  # docs/evidence/feedback.md: 15; ten entries each
    done("judge", folder, "--feedback", "x", code=2)


@pytest.mark.parametrize("option", ["--list", "--json"])
def test_where_nothing_is_asked_nothing_is_written(folder, option):
    before = contents(folder)
    found = done("judge", folder, "bm25", "fts", "--from-log", "--embedder", "none", option)
    assert "300 left" in found.stdout  # 30 queries of the log, ten entries each
    assert contents(folder) == before


ENTRY = Entry("a", title="Keyset cursors", text="Deep pages read and threw away fifty thousand rows every time.")


@tabled
def test_what_repeats_the_entry_is_copied(text, is_copied):
    assert copied(text, ENTRY) is is_copied


def test_queries_of_a_log_are_drawn_once_each():
    found = logged_queries(load(STARTER))
    assert 0 < len(found) <= 20
    assert len({text.lower() for text in found}) == len(found)
    assert logged_queries(load(STARTER)) == found
    assert logged_queries(replace(load(STARTER), feedback=None)) == []


@pytest.fixture
def unasked(tmp_path):
    return write_set(tmp_path, [ENTRY.text] * 6)


def test_the_command_helps_to_write_queries_refuses_copies_and_goes_on_to_judge(unasked):
    keys = "threw away fifty thousand\nslow lists with many rows\n\nwhat was thrown away\nq\nq"
    found = run("judge", unasked, "--out", unasked / "j", "--embedder", "none", typed=keys)
    assert found.exit_code == 0, found.output
    assert "search by words" in found.stderr
    assert written(unasked) == ["slow lists with many rows", "what was thrown away"]


def test_a_key_is_no_query_and_u_takes_the_last_one_back(unasked):
    keys = "u\n?\n0\nslow lists with many rows\nu\nu\n列表\nq\nq"
    found = run("judge", unasked, "--out", unasked / "j", "--embedder", "none", typed=keys)
    assert found.stderr.count("two letters") == 2
    assert found.stderr.count("no query to") == 2
    assert found.stderr.count("taken back: slow lists with many rows") == 1
    assert written(unasked) == ["列表"]


def test_what_was_typed_before_an_interruption_is_kept(unasked):
    found = run("judge", unasked, typed="what is this about\n")  # then the input ends
    assert (found.exit_code, written(unasked)) == (130, ["what is this about"])
