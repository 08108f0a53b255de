"""Recordings on disk, which configurations share one, what a replay may not change, and what one costs."""

import logging
import os
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from shared import STARTER, tabled

import steelyard_eval as sy
from steelyard import Entry, Searcher, find_system, parse_strategy
from steelyard.live.sources import RetrieverPool, identity
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems import SYSTEMS
from steelyard_eval.candidates.settings import of_retrievers
from steelyard_eval.datasets import load
from steelyard_eval.recording import record as price
from steelyard_eval.recording.disk import _check_codes, load as load_recording, save
from steelyard_eval.recording.provenance import agree, share
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import RecordingCache, Workspace


@pytest.fixture(scope="module")
def config():
    return ranked_by("weighted_sum(0.4*rrf(bm25, vector), 0.2*tags, 0.2*recency(half_life=90d), 0.2*domain)")


@pytest.fixture(scope="module")
def table(config):
    space = Workspace.open(load(STARTER))
    return record(space, space.dataset.queries, [config])


def test_a_recording_read_back_replays_to_the_same_bits(table, config, tmp_path):
    save(table, tmp_path / "r")
    again = load_recording(tmp_path / "r")
    assert isinstance(again.columns["bm25"], np.memmap)
    first, second = replay(table, config), replay(again, config)
    assert first.entry.tolist() == second.entry.tolist()
    assert first.ranking.score.tobytes() == second.ranking.score.tobytes()


def test_a_folder_of_something_else_is_left_alone(table, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(sy.DataError, match="not a recording"):
        save(table, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("harm", ["truncate", "pickle", "missing", "manifest"])
def test_a_broken_recording_is_told_from_a_whole_one(table, tmp_path, harm):
    folder = tmp_path / "r"
    save(table, folder)
    column = folder / "column.bm25.npy"
    {
        "truncate": lambda: column.write_bytes(column.read_bytes()[:-8]),
        "pickle": lambda: np.save(column, np.array([{}], dtype=object), allow_pickle=True),
        "missing": column.unlink,
        "manifest": lambda: (folder / "manifest.json").write_text("{"),
    }[harm]()
    with pytest.raises(sy.DataError, match="record again"):
        load_recording(folder)


@tabled
def test_every_part_of_the_fingerprint_is_compared(table, config, key, value):
    other = replace(table, fingerprint={**table.fingerprint, key: value})
    with pytest.raises(sy.ConfigError, match=key):
        replay(other, config)


def test_the_first_code_beyond_a_list_is_refused():
    """A list of 3 names has the codes 0, 1 and 2."""
    _check_codes({"kind": np.array([0, 2])}, "kind", 2, 3)
    for codes in ([0, 3], [-1, 2], [0]):
        with pytest.raises(ValueError, match="kind must"):
            _check_codes({"kind": np.array(codes)}, "kind", 2, 3)


def changed(config, name, **facts):
    """The configuration with other facts of one of its retrievers."""
    own = replace(config.retrievers[name], **facts)
    return replace(config, retrievers={**config.retrievers, name: own})


def test_a_configuration_that_needs_another_recording_is_refused_by_name(table, config):
    fields = dict.fromkeys(config.retrievers["fts"].field_weights, 2.0)
    with pytest.raises(sy.ConfigError, match=r"retrievers\.fts\.field_weights"):
        replay(table, changed(config, "fts", field_weights=fields))
    with pytest.raises(sy.ConfigError, match="depth 101"):
        replay(table, changed(config, "bm25", depth=101))


def plain(**parameters):
    """The system plain with these parameters of bm25."""
    return changed(find_system("plain").config(), "bm25", parameters=parameters)


def test_which_configurations_share_a_recording(monkeypatch):
    """The baselines; other parameters where the retriever is used, and texts embedded otherwise, do not."""
    fts = find_system("fts")
    names = ["fts", "bm25", "vector", "plain", "echovault", "echovault:shipped", "moltnet", "moltnet:shipped"]
    assert share([find_system(name).config() for name in names]) == [[0, 1, 2, 3], [4], [5], [6, 7]]
    assert share([plain(), plain(k1=0.9), plain(k1=1.2), fts.config()]) == [[0, 2, 3], [1]]
    other = replace(fts, profile="other", reading=replace(fts.reading, recipe="{text}"))
    monkeypatch.setitem(SYSTEMS, "fts:other", other)
    assert share([fts.config(), other.config()]) == [[0], [1]]


def test_a_replay_refuses_other_parameters_by_name_and_takes_any_depth():
    with pytest.raises(sy.ConfigError, match=r"^retrievers.bm25.k1 is 0.9,"):
        agree(plain(k1=0.9), identity(plain()) | {"model": ""})
    agree(find_system("fts").config(200), identity(find_system("fts").config(10)) | {"model": ""})


@tabled
def test_parameters_out_of_their_ranges(parameters, message):
    with pytest.raises(sy.ConfigError) as caught:
        identity(plain(**parameters))
    assert message in str(caught.value)


def test_functions_without_a_name_are_refused():
    """Two of them would be equal in every recording."""
    with pytest.raises(sy.ConfigError, match="has no name"):
        Reading(KeywordIndex("x", ("title",)), "{title}", match=lambda text: text)


class BegunError(Exception):
    """The work began."""


def begin(monkeypatch, caplog, queries):
    """The notes that were given when the first search was about to begin."""

    def stopped(*_args, **_how):
        raise BegunError

    monkeypatch.setattr(Searcher, "record", stopped)
    space = sy.load(STARTER).workspace
    config = find_system("plain").config(10, space.model, os.environ)
    with caplog.at_level(logging.INFO, "steelyard"), pytest.raises(BegunError):
        record(space, list(space.dataset.queries) * queries, [config])
    return [one.getMessage() for one in caplog.records if "about" in one.getMessage()]


def test_a_large_recording_is_told_before_it_begins_and_a_small_one_is_not(monkeypatch, caplog):
    # 159 queries a thousand times; 131 entries bound every list, whatever its depth.
    [told] = begin(monkeypatch, caplog, 1_000)
    assert told.startswith("recording fts, vector of 159,000 queries over 131 entries: about ")
    assert "GB; --split takes" in told
    caplog.clear()
    assert begin(monkeypatch, caplog, 1) == []


def test_a_case_without_a_retriever_ranks_all_candidates():
    texts = ("by_intent(default=bm25, fix=importance)", "weighted_sum(1*bm25, 1*importance)", "importance")
    assert [price.ranks_candidates(parse_strategy(text)) for text in texts] == [True, False, True]


def test_lists_are_never_longer_than_the_corpus():
    sizes = [price.estimate_cost(10, 2, depth, 50)[1] for depth in (100, 10_000)]
    assert sizes == [10 * 50 * (24 + 2 * 16)] * 2


def same(one, other):
    assert one.entries == other.entries
    for mine, theirs in (
        (one.columns, other.columns),
        (one.positions, other.positions),
        (one.query_facts.numbers, other.query_facts.numbers),
    ):
        assert mine.keys() == theirs.keys()
        for name, values in mine.items():
            np.testing.assert_array_equal(values, theirs[name])


@pytest.fixture
def shared():
    """The starter set, which nothing was recorded of."""
    return Workspace.open(load(STARTER))


def ranked_by(strategy):
    return find_system("plain").config(10, "minilm").with_strategy(parse_strategy(strategy))


def alone(data, queries, config):
    """The recording of a workspace that has made no other."""
    return record(Workspace.open(data), queries, [config])


def watch(monkeypatch, told):
    """Call `told` with the name of each retriever that searches."""
    own = RetrieverPool._retriever

    def watched(sources, name):
        retriever = copy(own(sources, name))
        for way in {"retrieve", "follow"} & set(dir(retriever)):
            search = getattr(retriever, way)
            object.__setattr__(retriever, way, lambda *asked, search=search: (told(name), search(*asked))[1])
        return retriever

    monkeypatch.setattr(RetrieverPool, "_retriever", watched)


def test_a_recording_with_lists_of_another_one_is_what_it_is_alone(shared, monkeypatch):
    queries, config, found = shared.dataset.queries[:12], ranked_by("rrf(bm25, vector, graph)"), []
    watch(monkeypatch, found.append)
    for other in (config, *of_retrievers(config, len(queries), {"identifiers", "ngrams"})):
        found.clear()
        table = record(shared, queries, [other])
        assert set(found) == {"graph"} if other is not config else {"graph", "bm25", "vector"} <= set(found)
        same(table, alone(shared.dataset, queries, other))


def test_lists_of_another_depth_parameter_or_state_of_the_store_are_found_anew(shared):
    queries, config = shared.dataset.queries[:5], ranked_by("bm25")
    record(shared, queries, [config])
    for other in (changed(config, "bm25", depth=3), changed(config, "bm25", parameters={"k1": 0.3})):
        same(record(shared, queries, [other]), alone(shared.dataset, queries, other))
    first = record(shared, queries, [config])
    shared.store.upsert([Entry("new", text=queries[0].text)])
    assert "new" not in first.entries
    assert "new" in record(shared, queries, [config]).entries


def test_the_first_places_of_a_deeper_list_are_not_searched_for(shared, monkeypatch):
    config, data = ranked_by("rrf(bm25, fts, vector)"), shared.dataset
    queries = data.queries[:12]
    deep, shallow = (
        replace(config, retrievers={name: replace(own, depth=depth) for name, own in config.retrievers.items()})
        for depth in (30, 7)
    )
    record(shared, queries, [deep])
    with monkeypatch.context() as patch:
        watch(patch, pytest.fail)
        table = record(shared, queries, [shallow])
    same(table, alone(data, queries, shallow))
    other = Workspace.open(data)
    record(other, queries, [shallow])
    same(record(other, queries, [deep]), record(shared, queries, [deep]))


def test_queries_that_were_recorded_are_not_searched_again(shared, monkeypatch):
    config, data = ranked_by("rrf(bm25, vector)"), shared.dataset
    record(shared, data.queries[:12], [config])
    watch(monkeypatch, pytest.fail)
    some = data.queries[7:3:-1]
    again = record(shared, some, [config])
    monkeypatch.undo()
    anew = alone(data, some, config)
    assert (again.queries, again.fingerprint) == (anew.queries, anew.fingerprint)
    np.testing.assert_array_equal(again.offsets, anew.offsets)
    assert [again.entries[at] for at in again.entry] == [anew.entries[at] for at in anew.entry]
    for name, values in anew.columns.items():
        np.testing.assert_array_equal(values, again.columns[name])
    other = replace(data.queries[5], text=data.queries[20].text)
    same(record(shared, [other], [config]), alone(data, [other], config))


def test_recordings_that_are_too_large_or_too_old_are_let_go(monkeypatch):
    data = load(STARTER)
    tables = [alone(data, data.queries[at : at + 1], ranked_by("bm25")) for at in range(3)]
    sizes = [2 * len(table) for table in tables]  # a score and a place in each row
    monkeypatch.setattr("steelyard_eval.recording.workspace.NUMBERS", sizes[0] + sizes[1])
    kept = RecordingCache()
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
