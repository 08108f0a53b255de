"""Logs of other programs, written to do harm: none ends in a traceback, floods the memory, or has no end."""

import json
import tracemalloc

import pytest
import small as sets

from steelyard.base.errors import DataError
from steelyard.memory.entry import Entry
from steelyard_eval.datasets import load
from steelyard_eval.extensions.endpoints.answer_form import FormError, Mentioned, ids_of
from steelyard_eval.extensions.usage.gather import gather

DEEP = '{"content": [' * 400 + '{"content": "x"}' + "]}" * 400  # in place of "@deep"
ODD = sets.ATTACKS["used"]  # program, a line of it, and how many searches it holds


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return load(sets.written(tmp_path / "small"))


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("name", ["one.jsonl", "one.json"])
def test_odd_values_are_passed_over(small, tmp_path, what, name):
    kind, record, lists = ODD[what]
    path = tmp_path / name
    path.write_text(json.dumps(record).replace('"@deep"', DEEP) + "\n")
    assert gather(small, f"{kind}:{path}").record["searches"] == lists


def test_a_document_that_is_no_utf8_is_counted(small, tmp_path):
    (tmp_path / "one.json").write_bytes(b'[{"attributes": "\xed\xa0\x80"}]')
    found = gather(small, f"otel:{tmp_path / 'one.json'}")
    assert sum(found.record["notes"].values()) == 1


@pytest.mark.parametrize("own", sets.ATTACKS["earlier logs"])
def test_an_earlier_log_is_checked(small, tmp_path, own):
    """A data set may come with one: a stranger wrote it."""
    log, path, line = tmp_path / "log.jsonl", tmp_path / "one.jsonl", f'{{"schema_version": 1, {own}}}'
    log.write_text(line + "\n")
    path.write_text("{}\n")
    with pytest.raises(DataError, match="--from"):
        gather(small, f"otel:{path}", log=log)
    assert log.read_text() == line + "\n"


def test_places_of_an_answer_do_not_fill_the_memory():
    """200 objects of 2,000 keys each: only as many places are looked at, and kept, as there is patience for."""
    document = {f"a{at}": {f"b{other}": {} for other in range(2000)} for at in range(200)}
    tracemalloc.start()
    try:
        with pytest.raises(FormError):
            ids_of(document)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_a_name_that_begins_one_id_alone_is_found_among_many():
    ids = [f"2026-01-01-{at:04}" for at in range(1000)]
    names = Mentioned([Entry(id_, text="x") for id_ in ids])
    assert names.named("2026-01-01-0999") == "2026-01-01-0999"
    assert names.named("2026-01-01-099") is None  # ten begin with it
    assert (
        Mentioned([Entry(id_, text="x") for id_ in ("abcdefgh-1", "abcdefgi-1")]).named("abcdefgh") == "abcdefgh-1"
    )
