"""Killed, interrupted, raced, out of disk or memory, not allowed to write: nothing is lost, every file is whole.

STEELYARD_KILLS sets the moments a command is killed at (2 otherwise), STEELYARD_RACES the rounds of each race.
"""

import builtins
import json
import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

import everything
import kill
import loop
import numpy as np
import pytest
import small
import states
from tests.unit.shared import tabled, vault_with

from steelyard import Entry, RecordedEmbedder, Searcher, Vault, find_system
from steelyard.base.errors import MachineError
from steelyard.base.machine import MEMORY
from steelyard.embedders.embed import embed_missing
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard_eval.common.process import MIN_MEMORY_BYTES, bounded, read_size
from steelyard_eval.recording.disk import _save
from steelyard_eval.vaults import vault_embedder

pytestmark = pytest.mark.usefixtures("keep_words")

AT_NIGHT = [("record", "tune", "reindex", "report", "export"), *([("serve",)] if find_spec("mcp") else [])]
KILLED = [("index",), *(pytest.param(names, marks=pytest.mark.nightly) for names in AT_NIGHT)]


class TestMoments:
    @pytest.mark.parametrize("names", KILLED, ids=" ".join)
    def test_a_command_that_is_killed_or_interrupted_loses_nothing_and_goes_on(self, names, monkeypatch):
        if reason := kill.traceable():
            pytest.skip(reason)
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")
        kill.settle()
        count = int(os.environ.get("STEELYARD_KILLS", "2"))  # compare and demo: make campaign
        for name in names:
            figures = kill.kill(name, everything.root(), count)
            assert figures["problems"] == []
            assert figures["killed"] >= count // 2

    @pytest.mark.nightly
    @pytest.mark.parametrize("label", everything.PAIRS)
    def test_two_processes_leave_what_one_after_the_other_leaves(self, label):
        for _ in range(int(os.environ.get("STEELYARD_RACES", "2"))):
            everything.two_at_once(None, label)


SPACE = Space("tiny", "text", "{text}")
FTS = find_system("fts").reading.index


@pytest.fixture
def meanwhile(tmp_path, monkeypatch):
    """Has another process act just before the next transaction, between a look and what follows from it."""
    original = Vault.transaction

    def arrange(action, **options):
        waiting = [action]

        @contextmanager
        def transaction(vault):
            if waiting:
                act = waiting.pop()
                with Vault(tmp_path / "vault", **options) as other:
                    act(other)
            with original(vault):
                yield

        monkeypatch.setattr(Vault, "transaction", transaction)

    return arrange


class TestMeanwhile:
    def test_another_process_makes_the_vault(self, tmp_path, meanwhile):
        meanwhile(lambda other: None, create=True)
        with Vault(tmp_path / "vault", create=True) as vault:
            assert vault.upsert([Entry("a")]) == 1

    def test_another_process_makes_the_index(self, tmp_path, meanwhile):
        with Vault(tmp_path / "vault", create=True) as vault:
            vault.upsert([Entry("a", title="red apple"), Entry("b", title="green pear")])
            meanwhile(lambda other: other.ensure_index(FTS))
            vault.ensure_index(FTS)
            vault.upsert([Entry("c", title="blue apple")])
            found = vault.keyword(FTS, "apple", [1.0] * len(FTS.fields), EVERYTHING, 10)
        assert sorted(one.id for one in found) == ["a", "c"]  # each entry is in the one index, once

    def test_another_process_drops_the_vectors(self, tmp_path, meanwhile):
        with vault_with(Entry("a"), path=tmp_path / "vault") as vault:
            vault.put_vectors(SPACE, ["a"], np.ones((1, 2), dtype=np.float32))
            meanwhile(lambda other: other.drop_space(SPACE))
            vault.drop_space(SPACE)
            assert vault.spaces() == []

    def test_another_process_changes_an_entry_that_is_being_embedded(self, tmp_path, meanwhile):
        """The vector stands for its old text: it waits for the next turn."""
        vectors = {"old": np.array([1, 0]), "new": np.array([0, 1]), "b": np.array([1, 1])}
        embedder = RecordedEmbedder("tiny", "{text}", vectors)
        with vault_with(Entry("a", text="old"), Entry("b", text="b"), path=tmp_path / "vault") as vault:
            meanwhile(lambda other: other.upsert([Entry("a", text="new")]))
            assert embed_missing(vault, embedder, SPACE) == 1
            assert vault.missing(SPACE) == ["a"]
            assert embed_missing(vault, embedder, SPACE) == 1
            assert vault.vectors_of(SPACE, ["a"])["a"].tolist() == [0, 1]


WRITES = [(name, (-1,), (0, 9)) for name in ("index", "record", "compare")]
AT_NIGHT_TOO = ("index", "record", "compare", "reindex", "tune", "report", "import", "demo")
MORE = [
    pytest.param(name, range(len(states.commands()[name])), (0, 9, 100), marks=pytest.mark.nightly)
    for name in AT_NIGHT_TOO
]
"""Commands, the states that they start from, and the pages that are free on their disk."""


@pytest.fixture
def place(tmp_path):
    """A small disk, mounted; `remounted(place)` makes it read-only."""
    (tmp_path / "out").mkdir()
    try:
        with everything.disk(tmp_path, "size=8m") as out:
            yield out
    except everything.NoDiskError as error:
        pytest.skip(error.__doc__)


def remounted(place):
    subprocess.run(["mount", "-o", "remount,ro", "tmpfs", place], check=True)


@pytest.mark.parametrize(("name", "starts", "free"), [*WRITES, *MORE])
def test_on_a_full_disk_files_are_old_or_whole_and_on_one_that_is_read_only_nothing_changes(
    name, starts, free, monkeypatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")
    try:
        for start in starts:
            yard = everything.yard(name, start)
            done = [everything.full_disk(None, yard, pages) for pages in free]
            everything.read_only(None, yard)
            assert done[0]["full disks that were refused"] == 1
    except everything.NoDiskError as error:
        pytest.skip(error.__doc__)


def test_a_column_is_never_short(place):
    """np.save says nothing when the last bytes of a file find no room; this one ends within its own buffer."""
    array, path, filler = np.arange(4600, dtype=np.float64), place / "column.npy", place / "filler"
    for pages in range(1, 14):
        filler.unlink(missing_ok=True)
        filler.write_bytes(b"x" * (os.statvfs(place).f_bavail - pages) * os.statvfs(place).f_frsize)
        try:
            _save(path, array)
        except OSError:
            path.unlink(missing_ok=True)
            continue
        assert np.array_equal(np.load(path), array)
        path.unlink()


@pytest.fixture
def bench(tmp_path):
    """A small data set, and a vault of two thirds of it."""
    states.small(tmp_path / "data")
    (tmp_path / "old").mkdir()
    states.older_vault(tmp_path / "data", tmp_path / "old")
    return tmp_path


class TestReadOnly:
    def test_reading_works(self, bench, place):
        shutil.copy(bench / "old" / "vault", place / "vault")
        with Vault(place / "vault") as vault:
            id_ = next(vault.entries()).id
        remounted(place)
        searched = ("search", "VAULT", "jwt signing keys", "--json")
        for words in (searched, ("vault", "get", "VAULT", id_), ("vault", "context", "VAULT")):
            there, here = (
                small.steelyard(*(at if word == "VAULT" else word for word in words))
                for at in (place / "vault", bench / "old" / "vault")
            )
            assert there.exit_code == here.exit_code == 0, there.output
            assert there.stdout == here.stdout != ""

    @pytest.mark.parametrize("index", [True, False])
    def test_a_vault_that_was_copied_while_it_was_written_is_read_whole_or_refused(self, place, tmp_path, index):
        """Its newest commits are in the log beside it, and need the log's index to be read."""
        with vault_with(Entry("a"), path=tmp_path / "vault") as vault:
            for suffix in ("", "-wal", "-shm") if index else ("", "-wal"):
                shutil.copy(tmp_path / f"vault{suffix}", place / f"vault{suffix}")
        remounted(place)
        if not index:
            with pytest.raises(MachineError, match=r"changes in 'vault-wal'"):
                Vault(place / "vault")
        else:
            with Vault(place / "vault") as vault:
                assert [entry.id for entry in vault.entries()] == ["a"]

    def test_a_folder_that_only_others_may_write(self, bench, tmp_path):
        """Not a disk that is read-only: here SQLite may open the file for writing, and not its log."""
        if os.geteuid():
            pytest.skip("needs root, who gives itself up")
        place = Path("/tmp") / f"steelyard-{os.getpid()}"  # noqa: S108 -- pytest's own folders are root's alone
        place.mkdir()
        try:
            shutil.copy(bench / "old" / "vault", place / "vault")
            (place / "vault").chmod(0o666)
            place.chmod(0o555)
            child = os.fork()
            if child == 0:
                os.setuid(65534)
                try:
                    with Vault(place / "vault") as vault:
                        os._exit(0 if vault.count() else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert [p.name for p in place.iterdir()] == ["vault"]
        finally:
            shutil.rmtree(place)


class TestPatience:
    def test_a_vault_that_another_process_keeps_writing_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard.stores.sqlite.guard.BUSY_TIMEOUT_MS", 50)
        with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
            with first.transaction():
                first.upsert([Entry("a")])
                assert second.count() == 0
                with pytest.raises(MachineError, match=r"writing .*vault; try"):
                    second.upsert([Entry("b")])
            assert second.count() == 1

    def test_a_transaction_that_outlives_its_vault_ends_quietly(self, tmp_path):
        """As when an interrupt falls into the machinery of `with`."""
        with Vault(tmp_path / "vault", create=True) as vault:
            transaction = vault.transaction()
            transaction.__enter__()
            vault.upsert([Entry("a")])
        transaction.gen.close()
        with Vault(tmp_path / "vault") as vault:
            assert vault.count() == 0


def test_a_search_never_compares_with_vectors_of_another_fit(bench):
    """An embedder of an older fit finds no vectors rather than those of the newer one."""
    path = bench / "old" / "vault"
    with Vault(path) as vault:
        searcher = Searcher(vault, find_system("echovault").config(10, "lsa"), vault_embedder(vault))
        assert searcher.search("jwt signing keys").strategy.signals == {"fts", "vector"}
        assert small.steelyard("index", bench / "data", path).exit_code == 0
        assert searcher.search("jwt signing keys").strategy.signals == {"fts"}


def test_a_killed_update_is_taken_up_although_its_entries_are_there(bench):
    """The entries were committed, the model was not: the next run changes no entry, and still fits anew."""
    shutil.copytree(bench / "old", bench / "broken")
    vault_with(*states.load_dataset(bench / "data").entries, path=bench / "broken" / "vault").close()
    for name in ("old", "broken"):
        assert small.steelyard("index", bench / "data", bench / name / "vault").exit_code == 0
    assert states.vault_state(bench / "broken") == states.vault_state(bench / "old")


def inside_an_extension(*_, **__):
    """What CPython makes of Ctrl-C where it falls into C code that goes on and returns a result."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError("a result with an exception set") from error


@pytest.mark.parametrize("stopped", [Mock(side_effect=KeyboardInterrupt), inside_an_extension])
def test_an_interrupt_says_so_in_one_line(monkeypatch, stopped):
    for name in ("steelyard_eval.vaults.read.read_entries", "steelyard_eval.cli.main._Main.make_context"):
        with monkeypatch.context() as patch:
            patch.setattr(name, stopped)
            result = small.steelyard("vault", "get", "vault", "a")
            assert (result.exit_code, result.stdout) == (130, "")
            assert result.stderr.strip().startswith("interrupted; what was committed is kept")
            assert len(result.stderr.strip().splitlines()) == 1
            assert name.endswith("make_context") or not result.stderr.startswith("\n")


def test_a_command_refuses_what_it_has_no_memory_for_and_leaves_nothing(tmp_path):
    """About a gigabyte: a hundred thousand entries of five kilobytes."""
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "corpus.jsonl").open("w") as stream:
        for at in range(100_000):
            stream.write(json.dumps({"id": f"e{at}", "text": f"token {at} " * 400}) + "\n")
    words = ["index", f"{tmp_path}/large", f"{tmp_path}/vault", "--memory", "512M"]
    done = subprocess.run([sys.executable, "-m", "steelyard_eval", *words], capture_output=True, text=True)
    assert done.returncode == 4, done.stderr[-2000:]
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "more with --memory" in line
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["large"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux bounds what a process allocates")
@pytest.mark.parametrize(
    "name",
    ["index", "record", "import", *(pytest.param(own, marks=pytest.mark.nightly) for own in ("compare", "learn"))],
)
def test_a_command_with_little_memory_writes_all_or_nothing(name):
    """It has what it has when it begins and no more, or a few megabytes; the state before, or the one after."""
    yard = everything.yard(name, -1)
    for extra in (0, 3):
        everything.little_memory(None, yard, extra)


@tabled
def test_whatever_tells_that_there_is_no_memory_is_one_message(error, words, closing, monkeypatch):
    """The texts are glibc's and Python's own."""

    def fails(*_):
        raise getattr(builtins, error)(*words)

    monkeypatch.setattr("steelyard_eval.cli.diagnosis.diagnose", fails)
    if closing:
        monkeypatch.setattr("steelyard_eval.cli.main.LOGGER.removeHandler", fails)
    outcome = small.steelyard("doctor")
    assert outcome.exit_code == 4
    assert closing or outcome.stderr.count("\n") == 1
    assert "ran out of memory" in outcome.stderr


def test_sizes_and_what_is_none():
    sizes = {"512M": MIN_MEMORY_BYTES, "2G": 2**31, "800m": 800 * 2**20, "1GiB": 2**30}
    assert {text: read_size(text) for text in sizes} == sizes
    for text in small.ATTACKS["sizes"]:
        assert "800M or 4G" in small.one_message(small.steelyard("doctor", "--memory", text), 2)


def test_the_bound_ends_with_the_command(monkeypatch):
    monkeypatch.delenv(MEMORY, raising=False)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded(2**31):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 2**31
        assert os.environ[MEMORY] == "512"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert MEMORY not in os.environ


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_a_loop_of_searches_holds_its_memory_and_its_files(count):
    """Four times as many searches with vectors, alone and in scopes; `make campaign` has 100,000."""
    found = loop.work(0, searches=2 * count)
    first = loop.work(2, searches=count)
    later = loop.work(3, searches=count)
    assert found["searches"] + first["searches"] + later["searches"] == 4 * count
