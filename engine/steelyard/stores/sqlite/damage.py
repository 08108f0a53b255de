"""Turns what SQLite raises on a damaged file into VaultError."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import apsw

from steelyard.base.errors import PATH_WIDTH, MachineError, VaultError, shown

T = TypeVar("T")
DAMAGE = (
    apsw.CorruptError,
    apsw.SQLError,  # a schema that says something else: every statement is our own, every value is bound
    apsw.EmptyError,  # sqlite-vec, for a row that its own tables lack
    apsw.InternalError,
    apsw.FormatError,
    apsw.TooBigError,
    apsw.MismatchError,
    apsw.ConstraintError,
    apsw.AuthError,  # a table that reaches for what no statement of ours needs
    UnicodeDecodeError,
)
"""What SQLite raises for such a file."""


def damaged(path: str, reason: object) -> VaultError:
    """The error for a vault that does not hold what a vault holds."""
    return VaultError(
        f"{shown(path, PATH_WIDTH)} is damaged ({shown(str(reason), 200)}); restore a copy of it, or index the "
        "data set into a new vault"
    )


def closed(path: str) -> VaultError:
    """The error for a vault that was closed, perhaps by another thread."""
    return VaultError(f"{shown(path, PATH_WIDTH)} is closed; keep the vault open until all searches are done")


def run_checked(cursor: apsw.Cursor, action: Callable[[], T]) -> T:
    """What the action returns; VaultError where the file is not what a vault is, or was closed meanwhile."""
    try:
        return action()
    except (apsw.FullError, *DAMAGE) as error:
        full = isinstance(error, apsw.FullError) or "Could not insert" in str(error)  # as sqlite-vec says it
        if full and not cursor.connection.filename:
            raise MachineError(
                "a vault in memory holds 2 GiB at most, and this is more; index the data set into a vault file, "
                "or narrow the scope"
            ) from None
        if full:
            raise apsw.FullError(str(error)) from None
        raise damaged(cursor.connection.filename, error) from None
    except apsw.InterruptError as error:
        if getattr(cursor.connection, "exhausted", False):  # a table that never ends
            raise damaged(cursor.connection.filename, error) from None
        raise closed("the vault") from None
    except (apsw.ConnectionClosedError, apsw.CursorClosedError):
        raise closed("the vault") from None
    except apsw.NoMemError as error:
        raise MemoryError(str(error)) from None
