"""Where a memory lies: ``cortex://session/...``, its directory, its dimension; and the file it is read from."""

from __future__ import annotations

from pathlib import PurePosixPath

from steelyard.base.errors import DataError, shown

SCHEME = "cortex://"
DIMENSIONS = ("resources", "user", "agent", "session")
LAYER_FILES = {".abstract.md": "l0", ".overview.md": "l1"}
"""The files of a directory's abstract and overview, and the fields they fill."""
TIMELINE = "/timeline"


def check_uri(uri: str) -> str:
    """The URI itself.

    Raises DataError where it is not ``cortex://`` and one of `DIMENSIONS`, or has a part that is empty, ``.``
    or ``..``, or a character that no file name can hold.
    """
    scheme, _, path = uri.partition("://")
    parts = path.split("/")
    if f"{scheme}://" != SCHEME or parts[0] not in DIMENSIONS:
        raise DataError(f"{shown(uri)} is not the URI of a memory; write {SCHEME}{'|'.join(DIMENSIONS)}/...")
    inner = parts[1:-1] if parts[-1] == "" else parts[1:]
    if any(part in ("", ".", "..") for part in inner) or any(mark in uri for mark in ("\\", "\0")):
        raise DataError(f"{shown(uri)} has a part that leaves its folder or names none; write each folder by name")
    return uri


def is_timeline(uri: str) -> bool:
    """Whether a URI lies in the messages of a session; the text ``/timeline`` anywhere in it is enough.

    >>> is_timeline("cortex://session/a/timeline/10_00.md")
    True
    """
    return TIMELINE in uri


def directory_of(uri: str) -> str:
    """The directory whose abstract and overview stand for a URI; itself where it is not a file.

    >>> directory_of("cortex://user/preferences/language.md")
    'cortex://user/preferences'
    """
    for name in LAYER_FILES:
        if uri.endswith(f"/{name}"):
            return uri.removesuffix(f"/{name}")
    folder, slash, name = uri.rpartition("/")
    return folder if slash and name.endswith(".md") and not name.startswith(".") else uri


def timeline_of(uri: str) -> str:
    """The directory of a message; any other URI is its own, so that its directory's layers do not reach it.

    The real program looks for the content of other directories under the URI of the directory itself.
    """
    return directory_of(uri) if is_timeline(uri) else uri


def uri_of(path: PurePosixPath) -> str:
    """The URI of a file or folder by its path below the root of the memory; see `check_uri` for errors."""
    return check_uri(f"{SCHEME}{path}")
