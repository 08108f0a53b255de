"""Killed, interrupted, raced, out of disk, not allowed to write: nothing is lost and every file is whole.

STEELYARD_KILLS sets the moments a command is killed at (4 otherwise), STEELYARD_RACES the rounds of each race.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard.base.errors import MachineError, VaultError
from steelyard.embedders.embed import RecordedEmbedder, embed_missing
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.choose import recommend as choosing
from steelyard_eval.cli.main import main
from steelyard_eval.recording.disk import load as load_recording

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("faults_commands", HERE / "commands.py")
commands = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(commands)


def script(name, *words):
    done = subprocess.run(
        [sys.executable, HERE / name, *map(str, words)], capture_output=True, text=True, check=False, env=clean()
    )
    assert done.stdout, done.stderr[-3000:]
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    if "skipped" in figures[0]:
        pytest.skip(figures[0]["skipped"])
    return figures


def clean():
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}


class TestMoments:
    @pytest.mark.parametrize(
        "names",
        [
            ("index",),
            pytest.param(("record", "tune", "reindex", "report", "export"), marks=pytest.mark.nightly),
            pytest.param(
                ("serve",),
                marks=[
                    pytest.mark.nightly,
                    pytest.mark.skipif(find_spec("mcp") is None, reason="the extra serve is not installed"),
                ],
            ),
        ],
        ids=" ".join,
    )
    def test_a_command_that_is_killed_or_interrupted_loses_nothing_and_goes_on(self, names):
        count = os.environ.get("STEELYARD_KILLS", "2")  # compare and demo: make kills
        for figures in script("kill.py", "--count", count, *names):
            assert figures["lost"] == 0, figures["problems"]
            assert figures["killed"] >= int(count) // 2

    @pytest.mark.nightly
    def test_two_processes_leave_what_one_after_the_other_leaves(self):
        for figures in script("race.py", "--rounds", os.environ.get("STEELYARD_RACES", "2")):
            assert figures["problems"] == [], figures
            assert all(set(codes.split()) <= {"0", "4"} for codes in figures["codes"])


class TestMeanwhile:
    """What another process does between a look and the transaction that follows from it."""

    @pytest.fixture
    def meanwhile(self, tmp_path, monkeypatch):
        """Runs something on the file just before the next transaction of the process."""
        original = Vault.transaction

        def arrange(action):
            waiting = [action]

            @contextmanager
            def transaction(vault):
                if waiting:
                    waiting.pop()(tmp_path / "vault")
                with original(vault):
                    yield

            monkeypatch.setattr(Vault, "transaction", transaction)

        return arrange

    def test_another_process_makes_the_vault(self, tmp_path, meanwhile):
        meanwhile(lambda path: Vault(path, create=True).close())
        with Vault(tmp_path / "vault", create=True) as vault:
            assert vault.upsert([Entry("a")]) == 1

    def test_another_process_makes_the_index(self, tmp_path, meanwhile):
        index = find_system("fts").reading.index
        with Vault(tmp_path / "vault", create=True) as vault:
            vault.upsert([Entry("a", title="red apple"), Entry("b", title="green pear")])
            meanwhile(lambda path: act(path, lambda other: other.ensure_index(index)))
            vault.ensure_index(index)
            vault.upsert([Entry("c", title="blue apple")])
            found = vault.keyword(index, "apple", [1.0] * len(index.fields), EVERYTHING, 10)
        assert sorted(one.id for one in found) == ["a", "c"]  # each entry is in the one index, once

    def test_another_process_drops_the_vectors(self, tmp_path, meanwhile):
        with Vault(tmp_path / "vault", create=True) as vault:
            vault.upsert([Entry("a")])
            vault.put_vectors(SPACE, ["a"], np.ones((1, 2), dtype=np.float32))
            meanwhile(lambda path: act(path, lambda other: other.drop_space(SPACE)))
            vault.drop_space(SPACE)
            assert vault.spaces() == []

    def test_another_process_changes_an_entry_that_is_being_embedded(self, tmp_path, meanwhile):
        """The vector stands for its old text: it waits for the next turn."""
        vectors = {"old": np.array([1, 0]), "new": np.array([0, 1]), "b": np.array([1, 1])}
        embedder = RecordedEmbedder("tiny", "{text}", vectors)
        with Vault(tmp_path / "vault", create=True) as vault:
            vault.upsert([Entry("a", text="old"), Entry("b", text="b")])
            meanwhile(lambda path: act(path, lambda other: other.upsert([Entry("a", text="new")])))
            assert embed_missing(vault, embedder, SPACE) == 1
            assert vault.missing(SPACE) == ["a"]
            assert embed_missing(vault, embedder, SPACE) == 1
            assert vault.vectors_of(SPACE, ["a"])["a"].tolist() == [0, 1]


SPACE = Space("tiny", "text", "{text}")


def act(path, action):
    with Vault(path) as other:
        action(other)


# Disks


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A small data set, a comparison's results, and one of everything that commands write."""
    root = tmp_path_factory.mktemp("bench")
    commands.small(root / "data")
    patch = pytest.MonkeyPatch()
    patch.setattr("steelyard_eval.datasets.starter.workshop", lambda: root / "data")
    # Disks fill while files are written: what is computed before that is computed once.
    for name, value in (("WORTH_STORING", 0), ("CHANGES", 0), ("CHANGES_SHARE", 0.1)):
        patch.setattr(f"steelyard.stores.sqlite.words.{name}", value)
    patch.setattr(choosing, "recommend", once(choosing.recommend))
    out = root / "out"
    out.mkdir()
    commands.older_vault(root / "data", out)
    for words in COMMANDS.values():
        if words[0] not in ("index", "reindex", "report"):
            assert run(root, out, words).exit_code == 0
    shutil.copy(out / "results.json", root / "results.json")
    assert run(root, out, COMMANDS["report"]).exit_code == 0
    yield root
    patch.undo()


def once(compute):
    """`compute`, which is called with arguments of one meaning throughout, called but once."""
    found = []

    def computed(*arguments, **options):
        if not found:
            found.append(compute(*arguments, **options))
        return found[0]

    return computed


COMMANDS = {
    "index": ("index", "DATA", "OUT/vault"),
    "reindex": ("index", "OUT/vault", "--rebuild"),
    "record": ("record", "DATA", "OUT/tables", "--systems", "fts,echovault"),
    "tune": ("tune", "DATA", "rrf(fts, bm25, k=60)", "--out", "OUT/w.json"),
    "compare": (
        *("compare", "DATA", "fts,bm25", "--metrics", "nDCG@10"),
        *("--write-runs", "OUT/runs", "--out", "OUT/results.json"),
    ),
    "report": ("report", "ROOT/results.json", "--out", "OUT/report"),
    "demo": ("demo", "--out", "OUT/demo"),
}


def run(root, out, words):
    filled = [
        word.replace("DATA", str(root / "data")).replace("ROOT", str(root)).replace("OUT", str(out))
        for word in words
    ]
    return CliRunner().invoke(main, filled, catch_exceptions=False)


def refused(result):
    assert result.exit_code == 4, result.output
    assert result.stderr.count("error:") == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("error:")


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def mount(tmp_path):
    """Mounts a small tmpfs; `mount(option)` again changes it."""
    place = tmp_path / "disk"
    place.mkdir()

    def mounted(options):
        again = "remount," if os.path.ismount(place) else ""
        command = ["mount", "-t", "tmpfs", "-o", again + options, "tmpfs", place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
        return place

    yield mounted
    if os.path.ismount(place):
        subprocess.run(["umount", "--lazy", place], check=True)


def leave(place, pages):
    """Fill a disk up to so many pages."""
    filler = place / "filler"
    filler.unlink(missing_ok=True)
    free = os.statvfs(place).f_bavail - pages
    if free > 0:
        filler.write_bytes(b"x" * (free * os.statvfs(place).f_frsize))


class TestFullDisk:
    @pytest.mark.parametrize("name", ["record", "tune", "compare", "report", "demo"])
    @pytest.mark.parametrize("start", ["empty", "old"])
    def test_files_are_old_or_whole_and_none_is_left_over(self, bench, mount, name, start):
        place = mount("size=8m")
        out = place / "out"
        out.mkdir()
        if start == "old":  # recognisable, and of about the size of the new ones
            shutil.copytree(bench / "out", out, dirs_exist_ok=True)
        before = files(out)
        for pages in (0, 3) if name == "demo" else (0, 1, 3, 9, 17):
            leave(place, pages)
            result = run(bench, out, COMMANDS[name])
            if result.exit_code == 0 and pages:
                break  # there was room
            refused(result)
            assert "left on device" in result.stderr or "may be full" in result.stderr
            changed = {path for path, content in files(out).items() if before.get(path) != content}
            assert all(whole(out / path) for path in changed)
            assert before.keys() <= files(out).keys()
            assert not [path for path in files(out) if ".part" in path]
        (place / "filler").unlink(missing_ok=True)
        assert run(bench, out, COMMANDS[name]).exit_code == 0

    @pytest.mark.parametrize("name", ["index", "reindex"])
    def test_a_vault_keeps_what_was_committed(self, bench, mount, name):
        place = mount("size=6m")
        out = place / "out"
        out.mkdir()
        shutil.copy(bench / "out" / "vault", out / "vault")
        before = commands.vault_state(out)
        for pages in (0, 1, 9, 40, 100):
            leave(place, pages)
            refused(run(bench, out, COMMANDS[name]))
            (place / "filler").unlink(missing_ok=True)
            state = commands.vault_state(out)
            assert state["entries"].keys() >= before["entries"].keys()
            assert name == "index" or state == before
        assert run(bench, out, COMMANDS[name]).exit_code == 0
        assert commands.vault_state(out)["entries"].keys() >= before["entries"].keys()

    def test_a_new_vault_is_refused_and_can_be_made_later(self, bench, mount):
        place = mount("size=16m")  # old and new vectors, and their log
        for pages in (0, 1, 2, 8, 12, 60):
            leave(place, pages)
            refused(run(bench, place, COMMANDS["index"]))
        (place / "filler").unlink()
        assert run(bench, place, COMMANDS["index"]).exit_code == 0
        assert len(commands.vault_state(place)["entries"]) == commands.ENTRIES

    def test_a_recording_is_never_short(self, bench, mount):
        """np.save says nothing when the last bytes of a file find no room."""
        place = mount("size=256k")
        for pages in range(1, 60):
            shutil.rmtree(place / "tables", ignore_errors=True)
            leave(place, pages)
            result = run(bench, place, COMMANDS["record"]) if pages % 6 == 0 else save_one(place)
            for folder in (place / "tables").glob("*.*"):
                assert len(load_recording(folder).entries)
            if result is not None:
                assert result.exit_code in (0, 4)


def save_one(place):
    """One column of a size that ends within numpy's own buffer."""
    from steelyard_eval.recording.disk import _save

    path = place / "column.npy"
    array = np.arange(4600, dtype=np.float64)
    try:
        _save(path, array)
    except OSError:
        path.unlink(missing_ok=True)
        return
    assert np.array_equal(np.load(path), array)
    path.unlink()


def whole(path):
    if path.suffix == ".json":
        return bool(json.loads(path.read_text()))
    if path.suffix == ".npy":
        return np.load(path) is not None
    if path.suffix == ".html":
        return path.read_text().rstrip().endswith("</html>")
    return path.read_text().endswith("\n")


class TestReadOnly:
    @pytest.fixture
    def out(self, bench, mount):
        place = mount("size=8m")
        shutil.copytree(bench / "out", place, dirs_exist_ok=True)
        return mount("ro")

    @pytest.mark.parametrize("name", COMMANDS)
    def test_writing_is_refused_and_changes_nothing(self, bench, out, name):
        before = files(out)
        result = run(bench, out, COMMANDS[name])
        refused(result)
        assert "ermission" in result.stderr
        assert files(out) == before

    @pytest.mark.parametrize(
        "words",
        [
            ("search", "OUT/vault", "jwt signing keys", "--json"),
            ("vault", "get", "OUT/vault", "ID"),
            ("vault", "context", "OUT/vault"),
        ],
        ids=lambda words: words[0],
    )
    def test_reading_works(self, bench, out, words):
        with Vault(bench / "out" / "vault") as vault:
            id_ = next(vault.entries()).id
        filled = [word.replace("ID", id_) for word in words]
        there, here = run(bench, out, filled), run(bench, bench / "out", filled)

        assert there.exit_code == here.exit_code == 0, there.output
        assert there.stdout == here.stdout
        assert there.stdout.strip()

    def test_a_first_write_is_refused(self, out):
        with Vault(out / "vault") as vault, pytest.raises(MachineError, match=r"cannot write .*vault"):
            vault.upsert([Entry("a")])

    def test_no_vault_is_no_vault(self, out):
        with pytest.raises(VaultError, match="is no vault"):
            Vault(out / "none")
        with pytest.raises(VaultError, match="SQLite file"):
            Vault(out / "w.json")

    @pytest.mark.parametrize("index", [True, False])
    def test_a_vault_that_was_copied_while_it_was_written_is_read_whole_or_refused(self, mount, tmp_path, index):
        """Its newest commits are in the log beside it, and need the log's index to be read."""
        place = mount("size=8m")
        with Vault(tmp_path / "vault", create=True) as vault:
            vault.upsert([Entry("a")])
            for suffix in ("", "-wal", "-shm") if index else ("", "-wal"):
                shutil.copy(tmp_path / f"vault{suffix}", place / f"vault{suffix}")
        mount("ro")
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
            shutil.copy(bench / "out" / "vault", place / "vault")
            (place / "vault").chmod(0o666)
            place.chmod(0o555)
            child = os.fork()
            if child == 0:
                os.setuid(65534)
                try:
                    with Vault(place / "vault") as vault:
                        os._exit(0 if vault.count() else 1)
                except BaseException:
                    import traceback

                    traceback.print_exc()
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert [p.name for p in place.iterdir()] == ["vault"]
        finally:
            shutil.rmtree(place)


class TestPatience:
    def test_a_vault_that_another_process_keeps_writing_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard.stores.sqlite.guard.PATIENCE", 50)
        with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
            with first.transaction():
                first.upsert([Entry("a")])
                assert second.count() == 0
                with pytest.raises(MachineError, match=r"writing .*vault; try"):
                    second.upsert([Entry("b")])
            assert second.count() == 1

    def test_a_snapshot_does_not_see_what_is_written_meanwhile(self, tmp_path):
        with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
            with second.snapshot():
                assert second.count() == 0
                first.upsert([Entry("a")])
                assert second.count() == 0
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

    def test_an_inner_transaction_is_part_of_the_outer_one(self, tmp_path):
        with Vault(tmp_path / "vault", create=True) as vault:
            with pytest.raises(RuntimeError), vault.transaction():
                vault.upsert([Entry("a")])
                raise RuntimeError
            assert vault.count() == 0
            with vault.transaction():
                vault.upsert([Entry("a")])
            assert vault.count() == 1


class TestModels:
    def test_a_search_never_compares_with_vectors_of_another_fit(self, bench, tmp_path):
        """An embedder of an older fit finds no vectors rather than those of the newer one."""
        from steelyard.live.search import Searcher
        from steelyard.systems import find_system
        from steelyard_eval.vaults import vault_embedder

        out = tmp_path / "out"
        out.mkdir()
        shutil.copy(bench / "out" / "vault", out / "vault")
        with Vault(out / "vault") as vault:
            searcher = Searcher(vault, find_system("echovault").config(10, "lsa"), vault_embedder(vault))
            assert searcher.search("jwt signing keys").strategy.signals == {"fts", "vector"}
            assert run(bench, out, COMMANDS["index"]).exit_code == 0
            assert searcher.search("jwt signing keys").strategy.signals == {"fts"}

    def test_a_killed_update_is_taken_up_although_its_entries_are_there(self, bench, tmp_path):
        """The entries were committed, the model was not: the next run changes no entry, and still fits anew."""
        for name in ("whole", "broken"):
            (tmp_path / name).mkdir()
            shutil.copy(bench / "out" / "vault", tmp_path / name / "vault")
        with Vault(tmp_path / "broken" / "vault") as vault:
            vault.upsert(commands.load_dataset(bench / "data").entries)
        for name in ("whole", "broken"):
            assert run(bench, tmp_path / name, COMMANDS["index"]).exit_code == 0
        assert commands.vault_state(tmp_path / "broken") == commands.vault_state(tmp_path / "whole")


def test_an_error_of_the_machine_nobody_foresaw_is_one_line(monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr("steelyard_eval.vaults.read.read_entries", full)
    result = CliRunner().invoke(main, ["vault", "get", "vault", "a"], catch_exceptions=False)
    refused(result)
    assert f"{tmp_path / 'x'}: No space" in result.stderr


def inside_an_extension(*_, **__):
    """What CPython makes of Ctrl-C where it falls into C code that goes on and returns a result."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError("a result with an exception set") from error


def at_once(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("stopped", [at_once, inside_an_extension])
def test_an_interrupt_says_so_in_one_line(monkeypatch, stopped):
    for name in ("steelyard_eval.vaults.read.read_entries", "steelyard_eval.cli.main._Main.make_context"):
        with monkeypatch.context() as patch:
            patch.setattr(name, stopped)
            result = CliRunner().invoke(main, ["vault", "get", "vault", "a"], catch_exceptions=False)
            assert result.exit_code == 130
            assert result.stderr.strip().startswith("interrupted; what was committed is kept")
            assert len(result.stderr.strip().splitlines()) == 1
            assert name.endswith("make_context") or not result.stderr.startswith("\n")
