"""Recordings by several processes have the bytes of one process, and leave nothing behind when they end early."""

import multiprocessing
import pickle
import signal

import pytest

from steelyard.base.errors import LostError, VaultError
from steelyard.memory.query import Query
from steelyard.stores.base import Found
from steelyard.table.join import complete, join, part
from steelyard.table.signal_table import NO_FACTS
from steelyard_eval.cli.demonstration import starter
from steelyard_eval.datasets import load
from steelyard_eval.recording import workers
from steelyard_eval.recording.record import record_systems
from steelyard_eval.recording.workspace import Workspace


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_processes_write_the_bytes_of_one(tmp_path):
    for jobs in (1, 2):
        record_systems(load(starter()), ["soleri", "spec_kit"], tmp_path / str(jobs), "all", 10, "auto", jobs=jobs)
    one, two = bytes_of(tmp_path / "1"), bytes_of(tmp_path / "2")
    assert len(one) > 20
    assert one == two


def test_parts_together_are_what_one_part_is():
    """Ids of one part lie between those of the others; a retriever found nothing for one part's queries."""
    queries = [Query("a", id="1"), Query("b", id="2"), Query("c", id="3")]
    lists = [
        {"fts": [Found("d", 2.0, 1), Found("b", 1.0, 2)], "bm25": [Found("b", 3.0, 1)]},
        {"fts": [], "bm25": []},
        {"fts": [Found("a", 5.0, 1), Found("c", 4.0, 3)], "bm25": [Found("e", 1.0, 1)]},
    ]
    scorers = {"tfidf": lambda query, ids: [float(ord(id_)) for id_ in ids]}
    whole = join(queries, [0.0] * 3, lists, scorers, None)
    parts = [part(queries[at : at + 1], lists[at : at + 1], scorers) for at in range(3)]
    found = complete(parts, queries, [0.0] * 3, None, None)
    assert found.about == NO_FACTS
    assert (found.entries, found.queries) == (whole.entries, whole.queries) == (tuple("abcde"), ("1", "2", "3"))
    for name in ("offsets", "entry"):
        assert getattr(found, name).tolist() == getattr(whole, name).tolist()
        assert getattr(found, name).dtype == getattr(whole, name).dtype
    for kind in ("columns", "positions"):
        made, expected = getattr(found, kind), getattr(whole, kind)
        assert {name: made[name].tobytes() for name in made} == {n: expected[n].tobytes() for n in expected}


def test_an_error_of_a_process_reaches_the_one_that_started_it():
    """Errors come pickled; one that cannot be read again would look as if the process had ended early."""
    sent = LostError("bm25", VaultError("the vault is closed"))
    got = pickle.loads(pickle.dumps(sent))  # noqa: S301 -- as multiprocessing does with what it sent itself
    assert (str(got), got.signal, type(got.reason)) == ("bm25 failed: the vault is closed", "bm25", VaultError)


def test_ctrl_c_ends_all_processes_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    space = Workspace.open(load(starter()), "none", jobs=2)
    system = workers.find_system("bm25")
    space.index_for([system], ["bm25"])

    def interrupted(blocks):
        yield blocks[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workers.parts_of(
            space.searcher(system.config(10)), space.dataset.queries, ["bm25"], 10, 2, 0.0, None, interrupted
        )
    assert not multiprocessing.active_children()
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
