"""Opening the SQLite file of a vault, also where nothing can be written, and what SQLite says when it cannot."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import addressof, c_int64
from pathlib import Path

import apsw
import sqlite_vec

from steelyard.base.errors import PATH_WIDTH, MachineError, VaultError, shown, visible
from steelyard.stores.sqlite.guard import GuardedConnection

MEMORY = ":memory:"
"""The path of a vault without a file."""
PATIENCE = 30_000
"""Milliseconds to wait for another process that is writing."""

LARGEST_MEMORY = 2**31 - 2**16
"""Bytes of a vault in memory at most: SQLite keeps it in one piece, and allocates none of 2 GiB."""
LARGEST_MAP = 2**40
"""Bytes of a file that are mapped at most."""

_numbers = itertools.count(1)


def memory_address() -> str:
    """A new place in the memory of this process, which every connection to it shares while one is open."""
    return f"file:/steelyard-{next(_numbers)}?vfs=memdb"


def connect_memory(address: str) -> apsw.Connection:
    """Open a place that `memory_address` named."""
    db = _connection(MEMORY, address, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI)
    most = c_int64(LARGEST_MEMORY)  # its own limit is 1 GiB
    db.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, addressof(most))
    return db


def connect(path: str, create: bool) -> apsw.Connection:
    """Open the file; one that cannot be written is opened for reading.

    Raises VaultError when there is none or it is no SQLite file, MachineError when the machine refuses.
    """
    place = shown(path, PATH_WIDTH)
    if Path(path).is_dir():
        raise VaultError(
            f"{place} is a folder, and a vault is one file; make one from a data set: "
            f"steelyard index {shlex.quote(visible(path))} {shlex.quote(visible(path.rstrip('/')))}.db"
        )
    if not create and not Path(path).is_file():
        make = f"steelyard index DATASET {place}; with --weights FILE it gets the vectors that these search"
        raise VaultError(f"there is no vault at {place}; make one with {make}")
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    try:
        if create:
            _private(path)
        db = _connection(path, path, flags)
        log = Path(f"{path}-wal")
        fold_log(db, create or not log.exists() or log.stat().st_size == 0)  # who only reads leaves it
        return db
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        if not create:
            return _unchanging(path, error)
        raise _cannot_open(path, error) from None
    except apsw.FullError as error:
        raise _cannot_open(path, error) from None


def _private(path: str) -> None:
    """Make the file of a new vault for its owner's eyes; SQLite gives its mode to the files beside it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not Path(path).is_file():
            raise MachineError(
                f"cannot open {shown(path, PATH_WIDTH)}: it is not a regular file; check the folder's permissions "
                "or name another file"
            ) from None
    except FileNotFoundError:
        folder = shown(str(Path(path).parent), PATH_WIDTH)
        raise MachineError(
            f"cannot open {shown(path, PATH_WIDTH)}: there is no folder {folder}; make it"
        ) from None
    except OSError as error:
        raise _cannot_open(path, error) from None


def fold_log(db: apsw.Connection, wanted: bool) -> None:
    """Whether closing the last connection moves what others left in the write-ahead log to the file itself."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, not wanted)


def map_file(db: apsw.Connection) -> None:
    """Read the file where the system keeps it in memory, and copy nothing: a large value is a chain of pages."""
    db.execute(f"PRAGMA mmap_size = {LARGEST_MAP}")


@contextmanager
def machine_errors(path: str) -> Iterator[None]:
    """What keeps SQLite from writing, as MachineError."""
    try:
        yield
    except apsw.BusyError:
        other = "thread" if path == MEMORY else "process"
        raise MachineError(f"another {other} is writing {path}; try again when it is done") from None
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise MachineError(f"cannot write {path}: {error}; free space or check permissions") from None


def _unchanging(path: str, reason: Exception) -> apsw.Connection:
    """Open a file whose folder cannot be written, as a file that never changes.

    A file in WAL mode is read through two more, ``-wal`` with the newest commits and ``-shm``, an index
    of it that even readers write. SQLite makes do with those that are there. Where there are none and
    none can be made, it reads only what is called immutable. That takes no locks and looks at no WAL,
    so it is right when the WAL is empty or gone, as a writer leaves it that closed the vault, and as
    long as nobody who may write the folder does so meanwhile. A WAL that holds something is therefore
    an error: the file alone would be an older vault, or a torn one.
    """
    place, log = shown(path, PATH_WIDTH), Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise MachineError(
            f"{place} has changes in {shown(log.name)} that cannot be read where nothing can be written; "
            "copy both to a folder that can be written"
        )
    try:
        address = f"{Path(path).absolute().as_uri()}?immutable=1"
        return _connection(path, address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.NotADBError:
        raise VaultError(f"{place} is not an SQLite file; name a vault") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        raise _cannot_open(path, reason) from None


def _cannot_open(path: str, error: Exception) -> MachineError:
    place = shown(path, PATH_WIDTH)
    return MachineError(f"cannot open {place}: {error}; check the folder's permissions and the disk's space")


def _connection(path: str, name: str, flags: int) -> apsw.Connection:
    db = GuardedConnection(name, flags=flags)
    try:
        db.set_busy_timeout(PATIENCE)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.enable_load_extension(False)
        db.guard(path)
        db.execute("SELECT count(*) FROM sqlite_schema")  # reads the header, and changes nothing
        db.execute("PRAGMA synchronous = normal")
        db.execute("PRAGMA foreign_keys = on")
    except BaseException:
        db.close()
        raise
    return db
