"""What makes URIs of paths, entries of URIs, and the vault file of a tenant."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from steelyard.base.errors import ConfigError, DataError, quote
from steelyard.memory.entry import Entry
from steelyard.systems.cortex_mem import DIMENSIONS, SCHEME

TENANT = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
"""Lower case, so that no two tenants share a file where file names ignore case."""


def check_uri(uri: str) -> str:
    """The URI itself.

    Raises DataError where it is not ``cortex://`` and one of `DIMENSIONS`, or has a part that is empty, ``.``
    or ``..``, or a character that no file name can hold.
    """
    scheme, _, path = uri.partition("://")
    parts = path.split("/")
    if f"{scheme}://" != SCHEME or parts[0] not in DIMENSIONS:
        raise DataError(f"{quote(uri)} is not the URI of a memory; write {SCHEME}{'|'.join(DIMENSIONS)}/...")
    inner = parts[1:-1] if parts[-1] == "" else parts[1:]
    if any(part in ("", ".", "..") for part in inner) or any(mark in uri for mark in ("\\", "\0")):
        raise DataError(f"{quote(uri)} has a part that leaves its folder or names none; write each folder by name")
    return uri


def uri_of(path: PurePosixPath) -> str:
    """The URI of a file or folder by its path below the root of the memory; see `check_uri` for errors."""
    return check_uri(f"{SCHEME}{path}")


def id_of(uri: str) -> str:
    """The id of the entry at a URI, without the white space that no id may hold.

    >>> id_of("cortex://user/my notes.md")
    'cortex://user/my%20notes.md'
    """
    return re.sub(r"\s", lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode()), uri)


def directory(uri: str) -> Entry:
    """The entry of a directory, without its layers."""
    return Entry(id=id_of(uri), uri=uri)


def vault_of(folder: str | Path, tenant: str) -> Path:
    """The file ``cortex-mem-{tenant}.db`` of a folder: one each, so that no tenant reads what another stored.

    Raises ConfigError for a name that is not 1 to 64 of a-z, 0-9, hyphen and underscore, beginning and ending with
    a letter or a digit; and where that file is a link, hard or soft, which might lead to another tenant's.
    """
    if not TENANT.fullmatch(tenant):
        raise ConfigError(
            f"tenant {quote(tenant)} is not a valid name; use 1 to 64 of a-z, 0-9, - and _, "
            "with a letter or a digit at both ends"
        )
    path = Path(folder) / f"cortex-mem-{tenant}.db"
    if path.is_symlink() or (path.exists() and path.stat().st_nlink > 1):
        raise ConfigError(f"{quote(str(path))} is a link; a tenant's vault must be a file")
    return path
