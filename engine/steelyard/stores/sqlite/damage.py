"""What SQLite says of a file whose bytes were changed, as VaultError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from steelyard.errors import PATH_WIDTH, VaultError, shown

T = TypeVar("T")
_DAMAGE = (
    apsw.CorruptError,
    apsw.SQLError,  # a schema that says something else: every statement is our own, every value is bound
    apsw.EmptyError,  # sqlite-vec, for a row that its own tables lack
    apsw.InternalError,
    apsw.FormatError,
    apsw.TooBigError,
    apsw.MismatchError,
    apsw.ConstraintError,
    UnicodeDecodeError,
)


class CheckedCursor(apsw.Cursor):
    """A cursor that raises VaultError where the file is not what a vault is."""

    def execute(self, *args: Any, **options: Any) -> CheckedCursor:  # noqa: ANN401 -- as apsw has it
        """As apsw's."""
        _checked(self, lambda: super(CheckedCursor, self).execute(*args, **options))
        return self

    def executemany(self, *args: Any, **options: Any) -> CheckedCursor:  # noqa: ANN401 -- as apsw has it
        """As apsw's."""
        _checked(self, lambda: super(CheckedCursor, self).executemany(*args, **options))
        return self

    def __next__(self) -> Any:  # noqa: ANN401 -- a row of whatever was asked
        return _checked(self, super().__next__)

    def fetchone(self) -> Any:  # noqa: ANN401 -- a row of whatever was asked
        """As apsw's."""
        return _checked(self, super().fetchone)

    def fetchall(self) -> list[Any]:
        """As apsw's."""
        return _checked(self, super().fetchall)


def damaged(path: str, reason: object) -> VaultError:
    """The error for a vault that does not hold what a vault holds."""
    return VaultError(
        f"{shown(path, PATH_WIDTH)} is damaged ({shown(str(reason), 200)}); restore a copy of it, or index the "
        "data set into a new vault"
    )


def closed(path: str) -> VaultError:
    """The error for a vault that was closed, perhaps by another thread."""
    return VaultError(f"{shown(path, PATH_WIDTH)} is closed; keep the vault open until all searches are done")


def _checked(cursor: apsw.Cursor, action: Callable[[], T]) -> T:
    try:
        return action()
    except _DAMAGE as error:
        raise damaged(cursor.connection.filename, error) from None
    except (apsw.InterruptError, apsw.ConnectionClosedError, apsw.CursorClosedError):
        raise closed("the vault") from None
