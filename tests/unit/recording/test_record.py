"""Recordings on disk: whole or not at all, and the same as in memory."""

import dataclasses
import json

import numpy as np
import pytest

from steelyard.base.errors import ConfigError, DataError
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.disk import _check_codes, save
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

STRATEGY = "weighted_sum(0.4*rrf(bm25, vector), 0.2*tags, 0.2*recency(half_life=90d), 0.2*domain)"


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


@pytest.fixture(scope="module")
def config(space):
    return find_system("plain").config(10, space.model).with_strategy(parse_strategy(STRATEGY))


@pytest.fixture(scope="module")
def table(space, config):
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

    with pytest.raises(DataError, match="not a recording"):
        save(table, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("harm", ["truncate", "pickle", "version", "missing", "manifest"])
def test_a_broken_recording_is_told_from_a_whole_one(table, tmp_path, harm):
    folder = tmp_path / "r"
    save(table, folder)
    column = folder / "column.bm25.npy"
    if harm == "truncate":
        column.write_bytes(column.read_bytes()[:-8])
    elif harm == "pickle":
        np.save(column, np.array([{}], dtype=object), allow_pickle=True)
    elif harm == "missing":
        column.unlink()
    else:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest = {**manifest, "schema_version": 9} if harm == "version" else "{"
        (folder / "manifest.json").write_text(json.dumps(manifest) if harm == "version" else "{")

    with pytest.raises(DataError, match="record again"):
        load_recording(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("index", {"fields": ["title"], "tokenizer": "porter unicode61"}),
        ("match", "prefix_or"),
        ("bm25", {"k1": 2.0, "b": 0.75}),
        ("filters", {"vector": "after_cut"}),
        ("similarity", {"vector": "l2"}),
        ("field_weights", {"fts": {"title": 3.0}}),
        ("model", "another"),
    ],
)
def test_every_part_of_the_fingerprint_is_compared(table, config, key, value):
    other = dataclasses.replace(table, fingerprint={**table.fingerprint, key: value})

    with pytest.raises(ConfigError, match=key):
        replay(other, config)


def test_the_first_code_beyond_a_list_is_refused():
    """A list of 3 names has the codes 0, 1 and 2."""
    _check_codes({"kind": np.array([0, 2])}, "kind", 2, 3)
    for codes in ([0, 3], [-1, 2], [0]):
        with pytest.raises(ValueError, match="kind must"):
            _check_codes({"kind": np.array(codes)}, "kind", 2, 3)


def test_a_configuration_that_needs_another_recording_is_refused_by_name(table, config):
    def other(name, **more):
        changed = dataclasses.replace(config.retrievers[name], **more)
        return dataclasses.replace(config, retrievers={**config.retrievers, name: changed})

    fields = dict.fromkeys(config.retrievers["fts"].field_weights, 2.0)
    with pytest.raises(ConfigError, match=r"retrievers\.fts\.field_weights"):
        replay(table, other("fts", field_weights=fields))
    with pytest.raises(ConfigError, match="depth 101"):
        replay(table, other("bm25", depth=101))
