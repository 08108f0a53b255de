"""Stores of other programs that are damaged or hostile: one message, nothing run, nothing outside read."""

import importlib.util
from pathlib import Path

import pytest

from steelyard.base.errors import DataError
from steelyard_eval.extensions.importers import load_store
from steelyard_eval.extensions.importers.pickled import plain
from steelyard_eval.extensions.importers.source import read_yaml

spec = importlib.util.spec_from_file_location("faults_stores", Path(__file__).parent / "stores.py")
stores = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stores)


def test_two_hundred_damaged_stores_end_in_one_message_or_none(store_root):
    stores.ROOT = store_root
    done = [stores.work(number) for number in range(200)]
    assert sum(map(len, done)) == 200
    assert {"refused", "imported"} == {name for one in done for name in one}


def test_a_pickle_that_calls_something_is_refused():
    import pickle

    class Evil:
        def __reduce__(self):
            return print, ("run",)

    with pytest.raises(ValueError, match="REDUCE"):
        plain(pickle.dumps(Evil()))
    assert plain(pickle.dumps({"a": [1, 2.5, None, ("b", True)]})) == {"a": [1, 2.5, None, ["b", True]]}


def test_yaml_that_names_a_class_or_grows_is_refused():
    with pytest.raises(DataError, match="not YAML"):
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
    (folder / ".memory_index.json").write_text(
        '{"memories": {"x": {"id": "x", "file": "../../../../etc/passwd", "created_at": "2026-01-01"}}}'
    )
    with pytest.raises(DataError, match="leaves its folder"):
        load_store(tmp_path)


def test_parquet_is_read_within_the_budget_of_compressed_files(tmp_path):
    """A kilobyte, or some more, of a column that says one value millions of times."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    many, ids = 300, pa.array([str(at) for at in range(300)])
    long = pa.array(["x" * 1_000_000])
    once = pa.array([0] * many, pa.int32())
    bombs = {
        "texts": {"id": ids, "text": pa.array(["x" * 1_000_000] * many)},
        "dictionary": {"id": ids, "text": pa.DictionaryArray.from_arrays(once, long)},
        "list": {"id": pa.array(["a"]), "text": pa.array(["x"]), "tags": pa.array([["a"] * 9_000_000])},
        "nulls": {"id": pa.nulls(9_000_000, pa.string()), "text": pa.nulls(9_000_000, pa.string())},
    }
    for name, columns in bombs.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd")
        assert path.stat().st_size < 500_000
        with pytest.raises(DataError, match="unpacks to"):
            load_store(path)
    inside = pa.ListArray.from_arrays(pa.array([0, many], pa.int32()), bombs["dictionary"]["text"])
    row = {"id": pa.array(["a"]), "text": pa.array(["x"]), "tags": inside}
    pq.write_table(pa.table(row), tmp_path / "in.parquet")
    with pytest.raises(DataError, match="dictionaries inside"):
        load_store(tmp_path / "in.parquet")
    rows = {"id": ids, "text": ids.dictionary_encode(), "tags": pa.array([["a", "b"]] * many)}
    pq.write_table(pa.table(rows), tmp_path / "plain.parquet")
    data = load_store(tmp_path / "plain.parquet")
    assert [(entry.id, entry.text) for entry in data.entries] == [(str(at), str(at)) for at in range(many)]
