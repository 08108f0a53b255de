"""The doctor: what is there, what is not, and that a broken part is a row and not a traceback."""

import json
import sys
import tempfile
from importlib import metadata
from types import SimpleNamespace

import apsw
import numpy as np
import pytest
from shared import run

from steelyard import Entry, Vault, find_system
from steelyard.base.extensions import EXTRAS
from steelyard.stores.base import Space
from steelyard.systems import analyses
from steelyard_eval.cli.diagnosis import Check, diagnose


def test_a_sound_machine_is_fit_and_names_its_versions():
    found = {r.name: r for r in diagnose()}
    assert all(row.state != "fault" for row in found.values())
    assert found["SQLite (in apsw)"].value.startswith(apsw.sqlite_lib_version())
    assert found["FTS5"] == Check("FTS5", "ok", "compiled in")
    assert found["sqlite-vec"].value == "v" + metadata.version("sqlite-vec")
    for package in ("steelyard", "numpy", "scipy", "scikit-learn", "matplotlib"):
        assert found[package].value == metadata.version(package)
    assert found["font of figures"].value == "DejaVu Sans"


class WithoutFts5(apsw.Connection):
    """A connection to an SQLite without that module."""

    def execute(self, sql):
        return super().execute(sql.replace("fts5", "no_such_module"))


REINSTALL = "pip install --force-reinstall sqlite-vec"
FULL = SimpleNamespace(free=2**20)


def failing(*_, **__):
    raise ValueError("no font")


def gone(patch, folder):
    (folder / "gone").mkdir()
    patch.chdir(folder / "gone")
    (folder / "gone").rmdir()


def not_installed(patch, _):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    for asked in ("version", "requires"):
        patch.setattr(metadata, asked, absent)


def in_a_file(patch, folder):
    """Root may write in every folder, but not in a file."""
    (folder / "file").write_text("")
    patch.setattr(tempfile, "tempdir", str(folder / "file"))


def harmed(target, value):
    """A fault: something that the doctor asks for is replaced."""
    return lambda patch, folder: patch.setattr(target, value)


def unloadable(module):
    return lambda patch, folder: patch.setitem(sys.modules, module, None)


FAULTS = [
    ("FTS5", harmed("apsw.Connection", WithoutFts5), "no such module", "apsw"),
    ("sqlite-vec", harmed("sqlite_vec.loadable_path", lambda: "/absent/vec0"), "ExtensionLoadingError", REINSTALL),
    ("SQLite (in apsw)", unloadable("apsw"), "ModuleNotFoundError", "pip install --force-reinstall"),
    ("sqlite-vec", unloadable("sqlite_vec"), "ModuleNotFoundError", REINSTALL),
    ("scipy", unloadable("scipy"), "ModuleNotFoundError", "pip install --force-reinstall"),
    ("temporary folder", in_a_file, "cannot be written", "TMPDIR"),
    ("temporary folder", harmed("tempfile.tempdir", "/absent/folder"), "cannot be written", "TMPDIR"),
    ("temporary folder", harmed("shutil.disk_usage", lambda _: FULL), "0.0 GiB free", "free some disk space"),
    ("current folder", gone, "cannot be written", "go to one that can be"),
    ("font of figures", harmed("matplotlib.font_manager.findfont", failing), "no font", "matplotlib"),
    ("steelyard", not_installed, "PackageNotFoundError", "pip install ."),
]


class TestDoctor:
    @pytest.mark.parametrize(("name", "harm", "part", "remedy"), FAULTS)
    def test_a_fault_says_why_and_what_to_do(self, monkeypatch, tmp_path, name, harm, part, remedy):
        harm(monkeypatch, tmp_path)
        rows = {row.name: row for row in diagnose()}
        assert rows[name].state == "fault"
        assert part in rows[name].value
        assert remedy in rows[name].remedy

    def test_an_extra_that_is_not_there_is_missing_and_no_fault(self, monkeypatch):
        monkeypatch.setitem(EXTRAS, "here", ("pytest",))
        monkeypatch.setitem(EXTRAS, "gone", ("no_such_module",))
        monkeypatch.setattr(metadata, "requires", lambda name: ['no-such-package>=2; extra == "gone"'])
        found = diagnose()
        extras = {r.name: r for r in found}
        assert extras["extra here"].state == "ok"
        assert extras["extra gone"].state == "missing"
        assert "no_such_module" in extras["extra gone"].value
        assert extras["extra gone"].remedy == "pip install 'no-such-package>=2'"
        assert all(row.state != "fault" for row in found)

    @pytest.mark.parametrize(("encoding", "state"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "missing")])
    def test_the_encoding_of_the_terminal(self, monkeypatch, encoding, state):
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding=encoding))
        found = diagnose()
        assert [row.state for row in found if row.name == "terminal encoding"] == [state]
        assert all(row.state != "fault" for row in found)

    def test_the_command_exits_0_or_4_and_tells_no_value_of_the_environment(self, monkeypatch):
        for name in ("OPENAI_API_KEY", "HF_TOKEN", "STEELYARD_SECRET", "STEELYARD_DATA"):
            monkeypatch.setenv(name, "s3cr3t-value\x1b[31m")
        sound = run("doctor", "--json")
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
        text = run("doctor")
        assert (sound.exit_code, text.exit_code) == (0, 4)
        assert json.loads(sound.stdout)["fit"] is True
        assert set(json.loads(sound.stdout)["checks"][0]) == {"name", "state", "value", "remedy"}
        assert "1 to fix" in text.stdout
        assert not any(part in sound.stdout + text.stdout for part in ("s3cr3t", "\x1b", "STEELYARD_"))

    def test_a_vault_shows_what_is_kept_in_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard.stores.sqlite.words.MIN_TEXTS_TO_STORE", 0)
        path = tmp_path / "vault"
        with Vault(path, create=True) as vault:
            ids = [f"e{at:03d}" for at in range(128)]
            vault.upsert(Entry(id_, text="token") for id_ in ids)
            vault.put_vectors(Space("m", "text", "{text}"), ids, np.ones((128, 4096), np.float32))
            vault.ensure_words(analyses([find_system("bm25")], vault))
            vault.upsert([Entry("b")])
        value = diagnose([str(path)])[-1].value
        assert value.startswith("129 entries; 1 lack vectors ('m'); vectors of")
        assert value.endswith("changes since: 1")
        monkeypatch.setenv("STEELYARD_MEMORY", "1")
        value = diagnose([str(path)])[-1].value
        assert "2 MiB are left to sqlite-vec" in value and "STEELYARD_VECTORS=int8" in value
        for form, told in (("int8", "vectors of up to 1 MiB"), ("int4", "STEELYARD_VECTORS is 'int4';")):
            monkeypatch.setenv("STEELYARD_VECTORS", form)
            assert told in diagnose([str(path)])[-1].value
