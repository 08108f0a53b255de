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
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.base.errors import SteelyardError, quote
from steelyard.base.extensions import EXTRAS, installing, missing_modules
from steelyard_eval.common.console import table

if TYPE_CHECKING:
    from steelyard.stores.sqlite import Vault

MIN_FREE_BYTES = 100 * 2**20
IMPORTED = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn", "matplotlib": "matplotlib"}
"""Compiled packages that may be installed and yet not load: distribution -> module."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `state` is ok, missing (something optional) or fault (something that Steelyard needs)."""

    name: str
    state: str
    value: str
    remedy: str = ""


def told(checks: Sequence[Check]) -> str:
    """The checks as a table, what helps, and how many things are to fix."""
    rows = table([asdict(row) for row in checks], {"name": "", "state": "state", "value": ""})
    remedied = sorted((row for row in checks if row.remedy), key=lambda row: row.state == "fault")
    remedies = "\n".join(f"{row.name}: {row.remedy}" for row in remedied)
    faults = sum(row.state == "fault" for row in checks)
    last = f"{faults} to fix" if faults else "everything required is there"
    return "\n\n".join(filter(None, [rows, remedies, last]))


class FaultError(Exception):
    """What is wrong, in words, and what helps where that is another thing than usual; `state` is of the check."""

    def __init__(self, value: str, remedy: str = "", state: str = "fault") -> None:
        super().__init__(value)
        self.remedy, self.state = remedy, state


def diagnose(vaults: Sequence[str] = ()) -> list[Check]:
    """Run all checks in the order shown; vault files are read from end to end."""
    again, restore = "pip install --force-reinstall", "restore a copy, or index the data set again"
    checks: dict[str, tuple[Callable[[], str], str]] = {  # what finds a value, or raises, and what helps then
        "steelyard": (lambda: metadata.version("steelyard"), "pip install . in the checkout"),
        "SQLite (in apsw)": (_sqlite, f"{again} apsw"),
        "FTS5": (_fts5, f"{again} apsw, whose wheel on PyPI has FTS5 compiled in"),
        "sqlite-vec": (_sqlite_vec, f"{again} sqlite-vec"),
        **{name: (partial(_imported, module), f"{again} {name}") for name, module in IMPORTED.items()},
        **{f"extra {name}": (partial(_installed_extra, name), installing(name)) for name in sorted(EXTRAS)},
        "current folder": (partial(_writable_folder, Path.cwd), "go to one that can be"),
        "temporary folder": (partial(_writable_folder, tempfile.gettempdir), "set TMPDIR to a folder that can be"),
        "font of figures": (_font, f"{again} matplotlib, which brings DejaVu Sans"),
        "memory": (_memory_bound, "unset STEELYARD_MEMORY, or write a whole number of MiB"),
        "terminal encoding": (_terminal, "use a UTF-8 locale, or set PYTHONIOENCODING=utf-8"),
        **{f"vault {path}": (partial(_vault, path), restore) for path in vaults},
    }
    return [_checked(name, *check) for name, check in checks.items()]


def _checked(name: str, find: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name, "ok", find())
    except FaultError as fault:
        return Check(name, fault.state, str(fault), fault.remedy or remedy)
    except Exception as error:  # a broken module may raise anything
        kind = "" if isinstance(error, SteelyardError) else f"{type(error).__name__}: "
        return Check(name, "fault", f"{kind}{error}"[:300], remedy)


def mebibytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 2**20:.0f} MiB"


def _sqlite() -> str:
    import apsw

    apsw.Connection(":memory:")
    return f"{apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}"


def _fts5() -> str:
    import apsw

    apsw.Connection(":memory:").execute("CREATE VIRTUAL TABLE temp.doctor USING fts5(text)")
    return "compiled in"


def _sqlite_vec() -> str:
    import apsw
    import sqlite_vec

    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    return str(next(db.execute("SELECT vec_version()"))[0])


def _imported(module: str) -> str:
    return str(importlib.import_module(module).__version__)


def _installed_extra(name: str) -> str:
    if absent := missing_modules(name):
        raise FaultError(f"not installed: {', '.join(absent)}", state="missing")
    return ", ".join(EXTRAS[name])


def _writable_folder(find: Callable[[], str | Path]) -> str:
    try:
        path = find()
        with tempfile.TemporaryFile(dir=path) as stream:
            stream.write(b"steelyard")
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise FaultError(f"cannot be written: {error.strerror or error}") from None
    value = f"{path}, {free / 2**30:.1f} GiB free"
    if free < MIN_FREE_BYTES:
        raise FaultError(value, "free some disk space")
    return value


def _font() -> str:
    from matplotlib import font_manager, rcParams

    wanted = font_manager.FontProperties(family=rcParams["font.family"])
    return str(font_manager.get_font(font_manager.findfont(wanted, fallback_to_default=False)).family_name)


def _memory_bound() -> str:
    from steelyard.base.machine import budget
    from steelyard_eval.common.process import usual

    return f"{mebibytes(usual())} a command without --memory, {mebibytes(budget())} of it for vaults"


def _terminal() -> str:
    encoding = str(getattr(sys.stdout, "encoding", None) or "unknown")
    if encoding.lower().replace("-", "") not in ("utf8", "utf8sig"):
        raise FaultError(encoding, state="missing")
    return encoding


def _vault(path: str) -> str:
    """What a vault holds: its schema is checked on opening, then every page (SQLite's quick_check)."""
    from steelyard.stores.sqlite import open_vault

    with open_vault(path) as vault:
        if faults := vault.faults():
            raise FaultError(faults[0])
        indexes = vault.word_indexes()
        behind = max((changes for _, changes in indexes), default=0)
        words = [f"word indexes: {len(indexes)}, changes since: {behind}"] if indexes else []
        texts = [space for space, _ in vault.spaces() if space.layer == "text"]
        lacking = {(quote(space.model), count) for space in texts if (count := len(vault.missing(space)))}
        without = [f"{count} lack vectors ({model})" for model, count in sorted(lacking)]
        return "; ".join([f"{vault.count()} entries", *without, *_vector_search(vault), *words])


def _vector_search(vault: Vault) -> list[str]:
    from steelyard.base.machine import MEMORY, PRECISION, budget, precision

    sizes, most = vault.vector_bytes(), budget()
    largest = max(sizes.values(), default=0)
    if not largest:
        return []
    if largest > most:
        hint = f"; {PRECISION}=int8 takes about a quarter" if precision() == "float" else ""
        return [f"vectors of {mebibytes(largest)} are left to sqlite-vec: {MEMORY} is {mebibytes(most)}{hint}"]
    return [f"vectors of up to {mebibytes(largest)}, searched in memory"]
