"""Checks whether this machine can run Steelyard, and vault files page by page, with a remedy for every fault.

No value of the environment is shown. The modules that are examined, and ours that need them, are
imported inside their checks, so that a broken one becomes a row and not a traceback.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import SteelyardError
from steelyard.base.extras import EXTRAS, installing, missing_modules
from steelyard_eval.common.console import table

if TYPE_CHECKING:
    from steelyard.stores.sqlite import Vault

DISTRIBUTION = "steelyard"
LEAST_PYTHON = (3, 11)
LEAST_FREE = 100 * 2**20
"""Bytes: below this a vault or a recording soon cannot be written."""
IMPORTED = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn", "matplotlib": "matplotlib"}
"""Compiled packages that may be installed and yet not load: distribution -> module."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `state` is ok, missing (something optional) or fault (something that Steelyard needs)."""

    name: str
    state: str
    value: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks; the machine is fit when none is a fault."""

    rows: tuple[Check, ...]

    @property
    def fit(self) -> bool:
        """Whether everything required is there."""
        return not any(row.state == "fault" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The document of `steelyard doctor --json`."""
        return {"schema_version": 1, "fit": self.fit, "checks": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        rows = table([asdict(row) for row in self.rows], {"name": "", "state": "state", "value": ""})
        faults = [row for row in self.rows if row.state == "fault"]
        others = [row for row in self.rows if row.state != "fault" and row.remedy]
        remedies = "\n".join(f"{row.name}: {row.remedy}" for row in (*others, *faults))
        verdict = "everything required is there" if self.fit else f"{len(faults)} to fix"
        return "\n\n".join(filter(None, [rows, remedies, verdict]))


def mebibytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 2**20:.0f} MiB"


def diagnose(vaults: Sequence[str] = ()) -> Diagnosis:
    """Run all checks in the order shown; vault files are read from end to end."""
    rows = [_steelyard(), _python(), *_sqlite(), *_packages(), *_extras()]
    rows += [_folder("current folder", Path.cwd), _folder("temporary folder", lambda: Path(tempfile.gettempdir()))]
    return Diagnosis((*rows, _font(), _memory_bound(), _terminal(), *map(check_vault, vaults)))


# The program and what it is made of


def _steelyard() -> Check:
    try:
        return Check("steelyard", "ok", metadata.version(DISTRIBUTION))
    except metadata.PackageNotFoundError:
        return Check("steelyard", "fault", "not installed", "pip install . in the checkout")


def _python() -> Check:
    value = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= LEAST_PYTHON:
        return Check("Python", "ok", value)
    return Check("Python", "fault", value, f"install Python {'.'.join(map(str, LEAST_PYTHON))} or newer")


def _sqlite() -> list[Check]:
    """Check SQLite in apsw, its FTS5, and sqlite-vec, by using each of them."""
    try:
        import apsw

        db = apsw.Connection(":memory:")
        check = Check("SQLite (in apsw)", "ok", f"{apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}")
    except Exception as error:  # a broken module may raise anything
        return [Check("SQLite (in apsw)", "fault", _reason(error), _again("apsw"))]
    return [check, _fts5(db), _sqlite_vec(db)]


def _fts5(db: Any) -> Check:  # noqa: ANN401 -- an apsw.Connection, which is not imported here
    try:
        db.execute("CREATE VIRTUAL TABLE temp.doctor USING fts5(text)")
        db.execute("DROP TABLE temp.doctor")
    except Exception as error:
        return Check("FTS5", "fault", _reason(error), _again("apsw", "whose wheel on PyPI has FTS5 compiled in"))
    return Check("FTS5", "ok", "compiled in")


def _sqlite_vec(db: Any) -> Check:  # noqa: ANN401 -- an apsw.Connection, which is not imported here
    try:
        import sqlite_vec

        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        return Check("sqlite-vec", "ok", str(next(db.execute("SELECT vec_version()"))[0]))
    except Exception as error:
        return Check("sqlite-vec", "fault", _reason(error), _again("sqlite-vec"))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:120]


def _again(package: str, note: str = "") -> str:
    return f"pip install --force-reinstall {package}" + (f", {note}" if note else "")


def _packages() -> list[Check]:
    """A row for each compiled package, which may be installed and yet not load."""
    return [_imported(package, module) for package, module in IMPORTED.items()]


def _imported(package: str, module: str) -> Check:
    try:
        return Check(package, "ok", str(importlib.import_module(module).__version__))
    except Exception as error:  # a broken module may raise anything
        return Check(package, "fault", _reason(error), _again(package))


def _extras() -> list[Check]:
    """A row for each extra that code asks for."""
    return [_extra(name, missing_modules(name)) for name in sorted(EXTRAS)]


def _extra(name: str, absent: Sequence[str]) -> Check:
    if absent:
        return Check(f"extra {name}", "missing", f"not installed: {', '.join(absent)}", installing(name))
    return Check(f"extra {name}", "ok", ", ".join(EXTRAS[name]))


# The machine


def _folder(name: str, find: Callable[[], Path]) -> Check:
    """Check that a file can be written in a folder, and how much space is free."""
    try:
        path = find()
        with tempfile.TemporaryFile(dir=path) as stream:
            stream.write(b"steelyard")
        free = shutil.disk_usage(path).free
    except OSError as error:
        remedy = "set TMPDIR to a folder that can be" if name.startswith("temporary") else "go to one that can be"
        return Check(name, "fault", f"cannot be written: {error.strerror or error}", remedy)
    value = f"{path}, {free / 2**30:.1f} GiB free"
    return Check(name, "ok", value) if free >= LEAST_FREE else Check(name, "fault", value, "free some disk space")


def _font() -> Check:
    """The font of figures."""
    try:
        from matplotlib import font_manager, rcParams

        wanted = font_manager.FontProperties(family=rcParams["font.family"])
        path = font_manager.findfont(wanted, fallback_to_default=False)
        return Check("font of figures", "ok", str(font_manager.get_font(path).family_name))
    except Exception as error:  # a broken module may raise anything
        return Check("font of figures", "fault", _reason(error), _again("matplotlib", "which brings DejaVu Sans"))


def _memory_bound() -> Check:
    from steelyard.base.errors import ConfigError
    from steelyard.base.machine import budget
    from steelyard_eval.common.environment import usual

    try:
        kept = mebibytes(budget())
    except ConfigError as error:
        return Check("memory", "fault", _reason(error), "unset STEELYARD_MEMORY, or write a whole number of MiB")
    return Check("memory", "ok", f"{mebibytes(usual())} a command without --memory, {kept} of it for vaults")


def _terminal() -> Check:
    encoding = str(getattr(sys.stdout, "encoding", None) or "unknown")
    if encoding.lower().replace("-", "") in ("utf8", "utf8sig"):
        return Check("terminal encoding", "ok", encoding)
    return Check("terminal encoding", "missing", encoding, "use a UTF-8 locale, or set PYTHONIOENCODING=utf-8")


# Vaults


def check_vault(path: str) -> Check:
    """Check a vault: its schema on opening, then every page (SQLite's quick_check)."""
    from steelyard.stores.opened import open_vault

    try:
        with open_vault(path) as vault:
            faults = vault.faults()
            recall = _recall(vault)
            value = "; ".join([f"{vault.count()} entries", *_memory(vault, recall), *_words(vault)])
    except SteelyardError as error:
        return Check(f"vault {path}", "fault", str(error)[:300], "restore a copy, or index the data set again")
    if faults:
        return Check(f"vault {path}", "fault", faults[0], "restore a copy, or index the data set again")
    if recall is not None and recall < 1:
        return Check(
            f"vault {path}", "fault", value, "unset STEELYARD_VECTORS, and report this: it must not happen"
        )
    return Check(f"vault {path}", "ok", value)


def _recall(vault: Vault) -> float | None:
    """What a scan in 8 bits a number finds of the nearest entries of a sample; None without such a scan."""
    from steelyard.base.machine import precision

    spaces = [space for space, _ in vault.spaces()]
    return min(map(vault.sampled_recall, spaces), default=None) if precision() == "int8" else None


def _memory(vault: Vault, recall: float | None) -> list[str]:
    """How the vectors of the largest space are searched."""
    from steelyard.base.machine import PRECISION, VARIABLE, budget

    sizes, most = vault.vector_bytes(), budget()
    largest = max(sizes.values(), default=0)
    if not largest:
        return []
    if largest > most:
        less = max(vault.vector_bytes("int8").values())
        hint = f"; {mebibytes(less)} would do with {PRECISION}=int8" if less <= most and less < largest else ""
        return [f"vectors of {mebibytes(largest)} are left to sqlite-vec: {VARIABLE} is {mebibytes(most)}{hint}"]
    if recall is None:
        return [f"vectors of up to {mebibytes(largest)}, searched in memory"]
    return [f"vectors of up to {mebibytes(largest)} in 8 bits a number, searched in memory; recall {recall:.4f}"]


def _words(vault: Vault) -> list[str]:
    """What is kept of the words of entries."""
    indexes = vault.word_indexes()
    behind = max((changes for _, changes in indexes), default=0)
    return [f"word indexes: {len(indexes)}, changes since: {behind}"] if indexes else []
