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

LIST = [{"id": "m1", "score": 10**300 * 10**100}, {"id": "m2", "score": 1}]
WHEN = {"start_time": "2026-07-22T09:00:00Z", "end_time": "2026-07-22T09:00:01Z"}
DEEP = {"content": "x"}
for _ in range(400):
    DEEP = {"content": [DEEP]}


def span(begin, operation="search_memory", records=LIST[1:], **more):
    """A line as ReadableSpan.to_json writes it, in which a search found some records."""
    has = {"operation.name": operation, "memory.query.text": "x", "memory.records": records, **more}
    context = {"trace_id": "t", "span_id": "1"}
    return {"context": context, "start_time": begin, "attributes": {f"gen_ai.{name}": has[name] for name in has}}


COMMAND = {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": DEEP}}]}
ODD = {
    "a score that no float holds": ("otel", span(WHEN["start_time"], records=LIST), 1),
    "a time of 5,000 digits": ("otel", span("9" * 5000), 0),
    "a time of 320 digits": ("otel", span("9" * 320), 0),
    "a time after the year 9999 in nanoseconds": ("otel", span(10**20), 0),
    "a time that is after the year 9999 in UTC": (
        "ubi",
        {"query_id": "1", "query_response_hit_ids": ["m1"], "timestamp": "9999-12-31T23:59:59-05:00"},
        0,
    ),
    "the last time there is": ("otel", span("9999-12-31T23:59:59.5Z"), 1),
    "a deep answer": ("otel", span(WHEN["start_time"], "chat", **{"output.messages": DEEP}), 0),
    "a deep question": ("transcripts", {"type": "user", "message": DEEP}, 0),
    "a deep command": ("transcripts", {"type": "assistant", "message": COMMAND}, 0),
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return load(sets.written(tmp_path / "small"))


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("name", ["one.jsonl", "one.json"])
def test_odd_values_are_passed_over(small, tmp_path, what, name):
    kind, record, lists = ODD[what]
    path = tmp_path / name
    path.write_text(json.dumps(record) + "\n")
    assert gather(small, f"{kind}:{path}").record["searches"] == lists


def test_a_document_that_is_no_utf8_is_counted(small, tmp_path):
    (tmp_path / "one.json").write_bytes(b'[{"attributes": "\xed\xa0\x80"}]')
    found = gather(small, f"otel:{tmp_path / 'one.json'}")
    assert sum(found.record["notes"].values()) == 1


@pytest.mark.parametrize(
    "own",
    [
        *('"search": "a", "actions": [1]', '"search": "a", "actions": [[]]', '"search": "a", "client_id": []'),
        *('"search": "a", "query_key": {}', '"search": "a", "policy": []', '"search": "a", "more": 1e999'),
        *('"search": "a", "more": "\\ud800"', '"search": "a", "configuration": {}'),
        *('"search": "a", "configuration": null', '"policy": 1.5, "configuration": {}'),
    ],
)
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
