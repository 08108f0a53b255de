"""Recordings by several processes have the bytes of one process, and leave nothing behind when they end early."""

import io
import multiprocessing
import os
import pickle
import signal
import zipfile
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import STARTER, contents

from steelyard.base.errors import DataError, MachineError, RetrieverError, VaultError
from steelyard.base.files import lock
from steelyard.memory.query import Query
from steelyard.stores.base import ScoredId
from steelyard.table.join import complete, join, part
from steelyard.table.signal_table import NO_FACTS
from steelyard_eval.datasets import load
from steelyard_eval.recording import workers, workspace
from steelyard_eval.recording.disk import load_block, save_block
from steelyard_eval.recording.record import record_systems
from steelyard_eval.recording.workspace import Workspace


def test_parts_together_are_what_one_part_is():
    """Ids of one part lie between those of the others; a retriever found nothing for one part's queries."""
    queries = [Query("a", id="1"), Query("b", id="2"), Query("c", id="3")]
    lists = [
        {"fts": [ScoredId("d", 2.0, 1), ScoredId("b", 1.0, 2)], "bm25": [ScoredId("b", 3.0, 1)]},
        {"fts": [], "bm25": []},
        {"fts": [ScoredId("a", 5.0, 1), ScoredId("c", 4.0, 3)], "bm25": [ScoredId("e", 1.0, 1)]},
    ]
    scorers = {"tfidf": lambda query, ids: [float(ord(id_)) for id_ in ids]}
    whole = join(queries, [0.0] * 3, lists, scorers, None)
    parts = [part(queries[at : at + 1], lists[at : at + 1], scorers) for at in range(3)]
    found = complete(parts, queries, [0.0] * 3, None, None)
    assert found.entry_facts == NO_FACTS
    assert (found.entries, found.queries) == (whole.entries, whole.queries) == (tuple("abcde"), ("1", "2", "3"))
    for name in ("offsets", "entry"):
        assert getattr(found, name).tolist() == getattr(whole, name).tolist()
        assert getattr(found, name).dtype == getattr(whole, name).dtype
    for kind in ("columns", "positions"):
        made, expected = getattr(found, kind), getattr(whole, kind)
        assert {name: made[name].tobytes() for name in made} == {n: expected[n].tobytes() for n in expected}


def test_an_error_of_a_process_reaches_the_one_that_started_it():
    """Errors come pickled; one that cannot be read again would look as if the process had ended early."""
    sent = RetrieverError("bm25", VaultError("the vault is closed"))
    got = pickle.loads(pickle.dumps(sent))  # noqa: S301 -- as multiprocessing does with what it sent itself
    assert (str(got), got.signal, type(got.reason)) == ("bm25 failed: the vault is closed", "bm25", VaultError)


def recorded_by(jobs, out, systems=("bm25",)):
    record_systems(Workspace.open(load(STARTER), jobs=jobs), list(systems), out, "all", 10)
    return contents(out)


class Counting(ThreadPoolExecutor):
    """An executor that is not a process pool; it loses its workers after some blocks, if told to."""

    def __init__(self, lasts=None):
        super().__init__(3)
        self.made, self.lasts = [], lasts

    def submit(self, task, block):
        if self.lasts is not None and len(self.made) >= self.lasts:
            raise BrokenExecutor("gone")
        self.made.append(Path(block.file).name)
        future = super().submit(task, block)
        if self.lasts is not None:
            future.result()
        return future


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(workspace, "WORTH", 1e-9)  # so that starter is worth two processes
    return lambda: sorted(path.name for path in (tmp_path / "cache" / "blocks").glob("*/*.npz"))


def test_processes_record_what_takes_longer_than_they_take_to_start():
    """4 signals of 60 queries over 5,882 entries take 0.2 s, and of 1,982 queries 8 s; a process takes 2 s."""
    for jobs, queries, expected in ((2, 60, False), (2, 1982, True), (1, 1982, False), (Counting(), 1, True)):
        own = Workspace(SimpleNamespace(entries=range(5_882)), None, None, workers=workers.Workers(jobs))
        assert (own.shares(queries, 4), own.shares(0, 4)) == (expected, False)


def test_any_executor_writes_the_bytes_of_one_process_and_leaves_no_block(tmp_path, blocks):
    executor = Counting()
    assert recorded_by(executor, tmp_path / "many") == recorded_by(1, tmp_path / "one")
    assert len(executor.made) == len(set(executor.made)) > 10
    assert blocks() == []


def test_what_lost_workers_had_finished_is_not_made_again(tmp_path, blocks, monkeypatch):
    """Two blocks are finished; then the workers are gone. The next run makes the others, and the same bytes."""
    first = Counting(lasts=2)
    with pytest.raises(MachineError, match="finished work is kept"):
        recorded_by(first, tmp_path / "many")
    first.shutdown()
    finished = blocks()
    assert finished == sorted(first.made)
    assert not (tmp_path / "many").exists()
    searched = []
    monkeypatch.setattr(
        workers, "save_block", lambda part, file: (searched.append(file.name), save_block(part, file))
    )
    assert recorded_by(Counting(), tmp_path / "many") == recorded_by(1, tmp_path / "one")
    assert len(searched) > 5
    assert not set(searched) & set(finished)
    assert blocks() == []


@pytest.mark.skipif((os.cpu_count() or 1) < 2 or not Path("/proc/self/task").is_dir(), reason="needs cores, /proc")
def test_a_process_has_no_threads_for_products(monkeypatch):
    """NumPy starts them when it is loaded, one for each further core, unless a variable was set before."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    own = workers.Workers(2)
    _ = own.executor
    assert dict(os.environ) == before
    assert len(own.executor.submit(os.listdir, "/proc/self/task").result()) == 1
    own.end()


def test_two_that_make_the_same_recording_do_not_share_blocks(tmp_path, blocks):
    with pytest.raises(MachineError):
        recorded_by(Counting(lasts=1), tmp_path / "many")
    (folder,) = (tmp_path / "cache" / "blocks").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    held = lock(folder)
    with pytest.raises(MachineError, match="made this recording"):
        recorded_by(Counting(), tmp_path / "many")
    assert recorded_by(2, tmp_path / "two") == recorded_by(1, tmp_path / "one")
    os.close(held)


def test_a_cut_block_is_refused(tmp_path):
    part_ = part([Query("a", id="1")], [{"fts": [ScoredId("d", 2.0, 1)]}], {})
    save_block(part_, tmp_path / "a.npz")
    again = load_block(tmp_path / "a.npz", 1)
    assert (again.entries, again.columns["fts"].tolist(), again.offsets.tolist()) == (["d"], [2.0], [0, 1])
    whole = (tmp_path / "a.npz").read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "a.npz").write_bytes(whole[:size])
        with pytest.raises(DataError, match="not a complete block"):
            load_block(tmp_path / "a.npz", 1)


def zipped(arrays, compression=zipfile.ZIP_STORED):
    """Members named as in a block; bytes as they are, arrays as .npy."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", compression) as members:
        for name, value in arrays.items():
            raw = io.BytesIO()
            if isinstance(value, bytes):
                raw.write(value)
            else:
                np.save(raw, value)
            members.writestr(f"{name}.npy", raw.getvalue())
    return whole.getvalue()


def asking(shape, descr):
    """The head of an array, with nothing behind it."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"shape": shape, "fortran_order": False, "descr": descr})
    return head.getvalue()


OF_ONE_QUERY = {
    "ids": np.frombuffer(b'["a", "b"]', np.uint8),
    "offsets": np.array([0, 2]),
    "entry": np.array([0, 1], np.int32),
    "columns.fts": np.array([1.0, np.nan]),
    "positions.fts": np.array([1, 0], np.int32),
    "ends.bm25": np.array([[0.0, 9.0]]),
}


def test_a_block_that_others_wrote_has_to_fit_together(tmp_path):
    """What it is made of is read; what was made of anything else ends in one message, whatever it is."""

    def loaded(content):
        (tmp_path / "a.npz").write_bytes(content)
        return load_block(tmp_path / "a.npz", 1)

    assert loaded(zipped(OF_ONE_QUERY)).entries == ["a", "b"]
    bare = asking((2,), "<f8")
    odd = (
        *({name: value for name, value in OF_ONE_QUERY.items() if name != left} for left in ("ids", "entry")),
        *(OF_ONE_QUERY | {"ids": np.frombuffer(text, np.uint8)} for text in (b"{{", b"\xff", b"{}", b"[1, 2]")),
        OF_ONE_QUERY | {"ids": np.frombuffer(b"[" * 100_000, np.uint8)},
        *(OF_ONE_QUERY | {"offsets": np.array(ends)} for ends in ([2, 0], [0, 1], 3, [0, 1, 2], [0.0, 2.0])),
        *(OF_ONE_QUERY | {"entry": np.array(codes)} for codes in ([0, 2], [-1, 0], ["a", "b"], [0])),
        *(OF_ONE_QUERY | {"columns.fts": np.array(own)} for own in ([1.0], ["x", "y"], [np.inf, 1.0], [1, 2])),
        *(OF_ONE_QUERY | {"columns.fts": raw} for raw in (b"", b"no array", bare, bare + bytes(15))),
        *(OF_ONE_QUERY | {"columns.fts": asking(shape, "<f8")} for shape in ((10**13,), (0,), (-1,))),
        OF_ONE_QUERY | {"columns.fts": asking((2,), "|V0")},
        OF_ONE_QUERY | {"positions.fts": np.array([0.5, 0.5])},
        OF_ONE_QUERY | {"ends.bm25": np.array([0.0, 9.0])},
    )
    compressed = (zipped(OF_ONE_QUERY, kind) for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    for content in (*map(zipped, odd), *compressed, zipped({}), bare + bytes(16)):
        with pytest.raises(DataError, match="complete block"):
            loaded(content)


def test_ctrl_c_ends_all_processes_and_leaves_blocks_alone(tmp_path, monkeypatch, blocks):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    space = Workspace.open(load(STARTER), "none", jobs=2)
    system = workers.find_system("bm25")
    space.index_for([system], ["bm25"])

    def interrupted(blocks):
        yield blocks[0]
        raise KeyboardInterrupt

    searcher, queries = space.searcher(system.config(10)), space.dataset.queries
    asked = (searcher, queries, ["bm25"], 10, space)
    with pytest.raises(KeyboardInterrupt), workers.submitted(*asked) as parts:
        parts(interrupted)
    assert not multiprocessing.active_children()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert blocks()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
