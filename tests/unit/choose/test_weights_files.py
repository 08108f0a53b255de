"""Weights files that are replaced: each is kept once beside it, and a line says how to undo that."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from steelyard.config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.choose.answer import write_and_log, write_weights


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def weights(name):
    return find_system(name).config(10)


def test_what_was_replaced_last_is_kept_once():
    out = Path("w.json")
    for held in ("mine 1", "mine 2"):
        out.write_text(held)
        assert write_weights({out: weights("bm25")}) == ["w.json: replaced; to undo: cp w.json.bak w.json"]
        assert Path("w.json.bak").read_text() == held
    # the same search, whenever it was chosen: nothing is lost, so the copy stays
    out.write_text(json.dumps(weights("bm25").to_json() | {"provenance": {"by": "hand"}}))
    assert write_weights({out: weights("bm25")}) == []
    assert Path("w.json.bak").read_text() == "mine 2"
    assert SearchConfig.load(out) == weights("bm25")


def test_of_files_that_are_removed_those_are_kept_whose_search_no_new_one_has():
    for name in ("vector", "bm25"):
        weights(name).save(f"{name}.json")
    lines = write_weights({Path("vector.json"): None, Path("bm25.json"): None, Path("new.json"): weights("bm25")})
    (line,) = lines
    assert line.endswith("to undo: cp vector.json.bak vector.json")
    assert sorted(path.name for path in Path().glob("*.json*")) == ["new.json", "vector.json.bak"]


def test_of_which_other_data_set_a_file_was_is_said():
    """Default names are shared by all data sets of a folder; by hand, or of this set, it says nothing more."""
    file = Path("search-weights.json")
    for name, told in (("other", True), ("mine", False), ("", False)):
        replace(weights("fts"), provenance={"dataset": name}).save(file)
        (line,) = write_weights({file: weights("bm25")}, SimpleNamespace(name="mine"))
        assert ("'other'" in line) == told


def test_python_logs_it(caplog):
    weights("bm25").save("w.json")
    assert write_and_log({Path("w.json"): weights("fts")}) == [Path("w.json")]
    assert SearchConfig.load("w.json.bak") == weights("bm25")
    assert "cp w.json.bak w.json" in caplog.text
