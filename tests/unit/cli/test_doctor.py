"""The doctor: what is there, what is not, and that a broken part is a row and not a traceback."""

import json
import sys
import tempfile
from importlib import metadata
from types import SimpleNamespace

import apsw
import numpy as np
import pytest
import sqlite_vec
from click.testing import CliRunner

from steelyard import __version__
from steelyard.base.extensions import EXTRAS
from steelyard.memory.entry import Entry
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import analyses, find_system
from steelyard_eval.cli.diagnosis import Check, diagnose
from steelyard_eval.cli.main import main


def row(name):
    return next(r for r in diagnose().rows if r.name == name)


def faulty(name, part, remedy):
    """The row is a fault that says why and what to do, and the machine is not fit."""
    found = diagnose()
    hit = next(r for r in found.rows if r.name == name)
    assert hit.state == "fault", hit
    assert part in hit.value
    assert remedy in hit.remedy
    assert not found.fit


def test_a_sound_machine_is_fit_and_names_its_versions():
    found = {r.name: r for r in diagnose().rows}

    assert diagnose().fit
    assert found["steelyard"].value == metadata.version("steelyard")
    assert found["SQLite (in apsw)"].value.startswith(apsw.sqlite_lib_version())
    assert found["FTS5"] == Check("FTS5", "ok", "compiled in")
    assert found["sqlite-vec"].value == "v" + metadata.version("sqlite-vec")
    for package in ("numpy", "scipy", "scikit-learn", "matplotlib"):
        assert found[package].value == metadata.version(package)
    assert found["font of figures"].value == "DejaVu Sans"


def test_every_fault_and_every_missing_part_has_a_remedy(monkeypatch):
    monkeypatch.setitem(EXTRAS, "rerank", ("no_such_module",))
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")

    states = {(r.state, bool(r.remedy)) for r in diagnose().rows}
    assert {("missing", True), ("fault", True)} <= states <= {("ok", False), ("missing", True), ("fault", True)}


@pytest.mark.parametrize("columns", ["80", "100"])
def test_it_is_one_table_that_fits_and_a_line_for_each_remedy(monkeypatch, columns):
    modules = tuple(f"no_such_module_{number}" for number in range(30))
    monkeypatch.setattr("steelyard_eval.cli.diagnosis.EXTRAS", {"rerank": modules})
    monkeypatch.setitem(EXTRAS, "rerank", modules)
    monkeypatch.setenv("COLUMNS", columns)

    rows, remedies, verdict = str(diagnose()).split("\n\n")

    assert max(map(len, rows.splitlines())) <= int(columns)
    assert len([line for line in rows.splitlines() if line[:1].strip()]) == len(diagnose().rows) + 1  # and a rule
    assert remedies.split() == ["extra", "rerank:", "pip", "install", "'.[rerank]'"]
    assert verdict.startswith("everything required")


# Faults


def test_an_sqlite_without_fts5(monkeypatch):
    real = apsw.Connection

    class WithoutFts5:
        def __init__(self, path):
            self._db = real(path)

        def execute(self, sql):
            return self._db.execute(sql.replace("fts5", "no_such_module"))

        def __getattr__(self, name):
            return getattr(self._db, name)

    monkeypatch.setattr(apsw, "Connection", WithoutFts5)

    faulty("FTS5", "no such module", "pip install --force-reinstall apsw")
    assert row("sqlite-vec").state == "ok"


def test_an_extension_that_does_not_load(monkeypatch, tmp_path):
    monkeypatch.setattr(sqlite_vec, "loadable_path", lambda: str(tmp_path / "vec0"))

    faulty("sqlite-vec", "ExtensionLoadingError", "pip install --force-reinstall sqlite-vec")
    assert row("FTS5").state == "ok"


@pytest.mark.parametrize(
    ("module", "name"),
    [("apsw", "SQLite (in apsw)"), ("sqlite_vec", "sqlite-vec"), ("scipy", "scipy"), ("matplotlib", "matplotlib")],
)
def test_a_module_that_cannot_be_imported(monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)

    faulty(name, "ModuleNotFoundError", "pip install --force-reinstall")


@pytest.mark.parametrize("kind", ["a file", "absent"])
def test_a_temporary_folder_that_cannot_be_written(monkeypatch, tmp_path, kind):
    (tmp_path / "a file").write_text("root may write every folder, but not in a file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / kind))

    faulty("temporary folder", "cannot be written", "TMPDIR")
    assert row("current folder").state == "ok"


def test_a_current_folder_that_is_gone(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    faulty("current folder", "cannot be written", "go to one that can be")


def test_a_full_disk(monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=2**20))

    faulty("temporary folder", "0.0 GiB free", "free some disk space")


def test_a_python_that_is_too_old(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))

    faulty("Python", "3.10.4", "3.11")


def test_no_font(monkeypatch):
    from matplotlib import font_manager

    def none(*_, **__):
        raise ValueError("Failed to find font")

    monkeypatch.setattr(font_manager, "findfont", none)

    faulty("font of figures", "Failed to find font", "matplotlib")


def test_a_checkout_that_was_never_installed(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(metadata, "requires", absent)

    faulty("steelyard", "PackageNotFoundError", "pip install .")


# What may be missing


def test_an_extra_that_is_not_there_is_missing_and_no_fault(monkeypatch):
    monkeypatch.setitem(EXTRAS, "here", ("pytest",))
    monkeypatch.setitem(EXTRAS, "gone", ("no_such_module",))
    monkeypatch.setattr(metadata, "requires", lambda name: ['no-such-package>=2; extra == "gone"'])
    found = diagnose()
    extras = {r.name: r for r in found.rows if r.name.startswith("extra ")}
    assert (extras["extra here"].state, extras["extra gone"].state) == ("ok", "missing")
    assert "no_such_module" in extras["extra gone"].value
    assert extras["extra gone"].remedy == "pip install 'no-such-package>=2'"
    assert found.fit


@pytest.mark.parametrize(("encoding", "state"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "missing")])
def test_the_encoding_of_the_terminal(monkeypatch, encoding, state):
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding=encoding))

    assert row("terminal encoding").state == state
    assert diagnose().fit


# The command


def test_the_command_exits_0_or_4(monkeypatch):
    sound = CliRunner().invoke(main, ["doctor", "--json"])
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    broken = CliRunner().invoke(main, ["doctor", "--json"])
    text = CliRunner().invoke(main, ["doctor"])

    assert (sound.exit_code, broken.exit_code, text.exit_code) == (0, 4, 4)
    assert json.loads(sound.stdout)["fit"] is True
    assert json.loads(broken.stdout)["fit"] is False
    assert set(json.loads(sound.stdout)["checks"][0]) == {"name", "state", "value", "remedy"}
    assert "1 to fix" in text.stdout
    assert __version__ in text.stdout


def test_a_vault_shows_what_is_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.stores.sqlite.words.WORTH_STORING", 0)
    with Vault(tmp_path / "vault", create=True) as vault:
        ids = [f"e{at:03d}" for at in range(128)]
        vault.upsert(Entry(id_, text="token") for id_ in ids)
        vault.put_vectors(Space("m", "text", "{text}"), ids, np.ones((128, 4096), np.float32))
        vault.ensure_words(analyses([find_system("bm25")]))
        vault.upsert([Entry("b")])
    value = diagnose([str(tmp_path / "vault")]).rows[-1].value
    assert value.startswith("129 entries; vectors of") and value.endswith("changes since: 1")
    monkeypatch.setenv("STEELYARD_MEMORY", "1")
    value = diagnose([str(tmp_path / "vault")]).rows[-1].value
    assert "2 MiB are left to sqlite-vec" in value
    assert "STEELYARD_VECTORS=int8" in value
    monkeypatch.setenv("STEELYARD_VECTORS", "int8")
    value = diagnose([str(tmp_path / "vault")]).rows[-1].value
    assert "vectors of up to 1 MiB" in value
    monkeypatch.setenv("STEELYARD_VECTORS", "int4")
    row = diagnose([str(tmp_path / "vault")]).rows[-1]
    assert "STEELYARD_VECTORS is 'int4';" in row.value


def test_no_value_of_the_environment_is_told_and_no_variable_of_the_tests(monkeypatch):
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "STEELYARD_SECRET", "STEELYARD_DATA"):
        monkeypatch.setenv(name, "s3cr3t-value\x1b[31m")

    text = CliRunner().invoke(main, ["doctor"]).stdout
    assert "s3cr3t" not in text
    assert "\x1b" not in text
    assert "STEELYARD_" not in text


@pytest.mark.parametrize("columns", ["80", "100"])
def test_it_fits_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)

    text = CliRunner().invoke(main, ["doctor"]).stdout
    table = text.partition("\n\n")[0]  # below it are commands, which are copied whole
    assert max(map(len, table.splitlines())) <= int(columns)
