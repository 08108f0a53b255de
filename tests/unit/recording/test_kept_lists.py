"""Recordings that differ in one retriever share the lists of the others, and nothing else changes."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard.live.sources import KeptLists, Sources
from steelyard.memory.entry import Entry
from steelyard.systems import find_system
from steelyard_eval.candidates.settings import of_retrievers
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import KeptTables, Workspace


def same(one, other):
    assert one.entries == other.entries
    assert one.columns.keys() == other.columns.keys()
    for name, values in one.columns.items():
        np.testing.assert_array_equal(values, other.columns[name])
        np.testing.assert_array_equal(one.positions[name], other.positions[name])
    assert one.asked.numbers.keys() == other.asked.numbers.keys()
    for name, values in one.asked.numbers.items():
        np.testing.assert_array_equal(values, other.asked.numbers[name])


def watch(monkeypatch, told):
    """Call `told` with the name of each retriever that searches."""
    own = Sources._retriever

    def watched(sources, name):
        retriever = copy(own(sources, name))
        for way in {"retrieve", "follow"} & set(dir(retriever)):
            search = getattr(retriever, way)
            object.__setattr__(retriever, way, lambda *asked, search=search: (told(name), search(*asked))[1])
        return retriever

    monkeypatch.setattr(Sources, "_retriever", watched)


def test_a_recording_with_lists_of_another_one_is_what_it_is_alone(monkeypatch):
    data = load(starter())
    queries = data.queries[:12]
    config = find_system("plain").config(10, "minilm")
    config = config.with_strategy(parse_strategy("rrf(bm25, vector, graph)"))
    found = []
    shared = Workspace.open(data)
    watch(monkeypatch, found.append)
    for other in (config, *of_retrievers(config, len(queries))):
        found.clear()
        table = record(shared, queries, [other])
        assert set(found) == {"graph"} if other is not config else {"graph", "bm25", "vector"} <= set(found)
        same(table, record(Workspace.open(data), queries, [other]))


def test_lists_of_another_depth_parameter_or_state_of_the_store_are_found_anew():
    data = load(starter())
    queries = data.queries[:5]
    config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy("bm25"))
    shared = Workspace.open(data)
    record(shared, queries, [config])

    bm25 = config.retrievers["bm25"]
    for own in (replace(bm25, depth=3), replace(bm25, parameters={"k1": 0.3})):
        other = replace(config, retrievers={**config.retrievers, "bm25": own})
        same(record(shared, queries, [other]), record(Workspace.open(data), queries, [other]))
    first = record(shared, queries, [config])
    shared.store.upsert([Entry("new", text=queries[0].text)])
    assert "new" not in first.entries
    assert "new" in record(shared, queries, [config]).entries


def test_the_first_places_of_a_deeper_list_are_not_searched_for(monkeypatch):
    data = load(starter())
    config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy("rrf(bm25, fts, vector)"))
    shared, queries = Workspace.open(data), data.queries[:12]
    deep, shallow = (
        replace(config, retrievers={name: replace(own, depth=depth) for name, own in config.retrievers.items()})
        for depth in (30, 7)
    )
    record(shared, queries, [deep])
    with monkeypatch.context() as patch:
        watch(patch, pytest.fail)
        table = record(shared, queries, [shallow])

    same(table, record(Workspace.open(data), queries, [shallow]))
    other = Workspace.open(data)
    record(other, queries, [shallow])
    same(record(other, queries, [deep]), record(shared, queries, [deep]))


def test_the_oldest_goes_first(monkeypatch):
    monkeypatch.setattr("steelyard.live.sources.KEPT", 2)
    kept = KeptLists()
    for key in "abc":
        kept.get(key, lambda key=key: key)

    assert kept.get("b", lambda: "again") == "b"
    assert kept.get("a", lambda: "again") == "again"


def test_queries_that_were_recorded_are_not_searched_again(monkeypatch):
    data = load(starter())
    config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy("rrf(bm25, vector)"))
    shared = Workspace.open(data)
    record(shared, data.queries[:12], [config])
    watch(monkeypatch, pytest.fail)

    some = data.queries[7:3:-1]
    again = record(shared, some, [config])

    monkeypatch.undo()
    alone = record(Workspace.open(data), some, [config])
    assert again.queries == alone.queries
    assert again.fingerprint == alone.fingerprint
    np.testing.assert_array_equal(again.offsets, alone.offsets)
    assert [again.entries[at] for at in again.entry] == [alone.entries[at] for at in alone.entry]
    for name, values in alone.columns.items():
        np.testing.assert_array_equal(values, again.columns[name])
    other = replace(data.queries[5], text=data.queries[20].text)
    found = record(shared, [other], [config])
    same(found, record(Workspace.open(data), [other], [config]))


def test_recordings_that_are_too_large_or_too_old_are_let_go(monkeypatch):
    data = load(starter())
    config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy("bm25"))
    tables = [record(Workspace.open(data), data.queries[at : at + 1], [config]) for at in range(3)]
    sizes = [2 * len(table) for table in tables]  # a score and a place in each row
    monkeypatch.setattr("steelyard_eval.recording.workspace.NUMBERS", sizes[0] + sizes[1])
    kept = KeptTables()
    for at in (0, 1):
        kept.keep("key", data.queries[at : at + 1], tables[at])
    assert [kept.find("key", data.queries[at : at + 1]) is not None for at in range(3)] == [True, True, False]
    kept.keep("key", data.queries[2:3], tables[2])
    assert kept.find("key", data.queries[:1]) is None
    assert kept.find("other", data.queries[2:3]) is None

    monkeypatch.setattr("steelyard_eval.recording.workspace.NUMBERS", sizes[0] - 1)
    kept.keep("key", data.queries[:1], tables[0])
    assert kept.find("key", data.queries[:1]) is None
    assert kept.find("key", data.queries[2:3]) is not None
