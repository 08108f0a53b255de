"""Stores of other programs that are damaged or hostile: one message, nothing run, nothing outside read."""

import pickle
import sqlite3

import fuzz
import pytest
import small
from tests.unit.shared import tabled

from steelyard.base.errors import DataError
from steelyard_eval.extensions.importers import load_store
from steelyard_eval.extensions.importers.pickled import plain
from steelyard_eval.extensions.importers.source import read_yaml


def test_two_hundred_damaged_stores_end_in_one_message_or_none(store_root):
    tally = fuzz.run("store", 0, 200)
    assert tally.faults == {}
    assert 0 < tally.outcomes["imported"] < 200


class Calling:
    def __reduce__(self):
        return print, ("run",)


def nested(make, inner, times=9):
    """Ten of the value in one, ten of these in one, and so on: a billion of it in a few hundred bytes."""
    for _ in range(times):
        inner = make(inner)
    return inner


def of_state(state):
    """An object with attributes."""
    return b"\x80\x04\x8c\x01a\x8c\x01b\x93)\x81" + pickle.dumps(state, 4)[:-1] + b"b."


CIRCLE = []
CIRCLE.append(CIRCLE)
PAIRS = [[at * (2**61 - 1), None] for at in range(100)]
"""Keys could be numbers that all collide: a megabyte took a minute."""
BOMB = nested(lambda inner: [inner] * 10, "x" * 8)
PICKLES = {
    "a call": (Calling(), "REDUCE"),
    "lists": (BOMB, ""),
    "tuples": (nested(lambda inner: (inner,) * 10, "x" * 8), ""),
    "objects": (nested(lambda inner: {str(at): inner for at in range(10)}, "x" * 8), ""),
    "one text": (["x" * 100_000] * 1000, ""),
    "one number": ([[2**2000]] * 200_000, ""),
    "keys": ([{"x" * 100_000: 1}] * 1000, ""),
    "in itself": (CIRCLE, "no text"),
    "too deep": (nested(lambda inner: [inner], 1, 72), "nested too deep"),
    "a number as a key": ({7: 1}, "no text"),
    "pairs as attributes": (of_state(PAIRS), "broken"),
    "pairs as attributes by name": (of_state({"__dict__": PAIRS}), "broken"),
}


@pytest.mark.parametrize("kind", PICKLES)
def test_a_pickle_that_calls_something_or_grows_is_refused(kind):
    held, why = PICKLES[kind]
    raw = held if isinstance(held, bytes) else pickle.dumps(held, 4)
    assert len(raw) < 1_000_000
    with pytest.raises(ValueError, match=why or None):
        plain(raw)


def test_a_pickle_of_plain_values_is_read():
    assert plain(pickle.dumps({"a": [1, 2.5, None, ("b", True)]})) == {"a": [1, 2.5, None, ["b", True]]}


@pytest.mark.parametrize(
    "more", [{"payload": {"data": "hello", "more": BOMB}}, {"id": True}, {"payload": {"data": 7}}]
)
def test_a_hostile_qdrant_folder_ends_in_one_message(tmp_path, more):
    place = tmp_path / "collection" / "notes"
    place.mkdir(parents=True)
    (tmp_path / "meta.json").write_text("{}")
    point = {"id": "p1", "payload": {"data": "hello"}, "vector": [0.5], **more}
    with sqlite3.connect(place / "storage.sqlite") as db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        db.execute("INSERT INTO points VALUES ('p1', ?)", (pickle.dumps(point, 4),))
    with pytest.raises(DataError):
        load_store(tmp_path)


def test_yaml_that_names_a_class_or_grows_is_refused():
    with pytest.raises(DataError, match="tags"):
        read_yaml("!!python/object/apply:os.system ['true']", "x")
    with pytest.raises(DataError, match="anchors"):
        read_yaml("a: &a [1]\nb: [*a, *a]", "x")
    with pytest.raises(DataError, match="64 levels"):
        read_yaml("[" * 1000 + "]" * 1000, "x")


def test_a_note_that_is_too_large_is_left_out(tmp_path):
    (tmp_path / "small.md").write_text("A note.")
    with (tmp_path / "large.md").open("wb") as stream:
        stream.truncate(17 * 2**20)
    data = load_store(tmp_path)
    assert [entry.id for entry in data.entries] == ["small"]
    assert any("large.md" in note and "16 MB" in note for note in data.notices)


def test_a_path_in_a_memory_index_leads_nowhere_outside(tmp_path):
    folder = tmp_path / "user" / "default"
    (folder / "events").mkdir(parents=True)
    (folder / "events" / "a.md").write_text("# A\n\ntext")
    (tmp_path.parent / "outside.md").write_text("the secret")
    (folder / ".memory_index.json").write_text(
        '{"memories": {"x": {"id": "x", "file": "../../../outside.md", "created_at": "2026-01-01"}}}'
    )
    assert [entry.text for entry in load_store(tmp_path).entries] == ["# A\n\ntext"]


@tabled
def test_a_value_of_a_select_that_cannot_be_read_is_one_message(tmp_path, select):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("CREATE TABLE t (id, text)")
    given = ("--set", f"sql=SELECT {select} AS text")
    assert small.steelyard("import", f"{tmp_path}/s.db", tmp_path / "out", *given).exit_code == 2
    assert not (tmp_path / "out").exists()
