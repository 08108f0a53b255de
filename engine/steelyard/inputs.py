"""The one door for files that are read: regular files only, no more bytes than are allowed, compressed or not.

A name may lead anywhere: to a pipe that never answers, to a device without end, to eight megabytes that unpack to
eight gigabytes. Links are followed to what they point at.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from pathlib import Path

LIMIT = "STEELYARD_LARGEST_FILE_MB"
"""The variable that sets another size."""
LARGEST_MB = 4096
LEAST_UNPACKED, MOST_UNPACKED = 64 * 2**20, 200
"""A compressed file may unpack to this many bytes, or to this many times its size."""


class UnpackError(ValueError):
    """A compressed file that is broken, or unpacks to too much."""


def largest() -> int:
    """Bytes that a file may have; ValueError when the environment asks for no number."""
    asked = os.environ.get(LIMIT, "").strip()
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        raise ValueError(f"{LIMIT} is no whole number of megabytes")
    return int(asked or LARGEST_MB) * 2**20


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a regular file for reading; OSError for anything else, at once, and for a file that is too large."""
    # Without O_NONBLOCK a pipe that nobody writes would be waited for here.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        if found.st_size > (most := _most()):
            reason = f"has more than {most / 2**20:g} MB; set {LIMIT} to read it"
            raise OSError(errno.EFBIG, reason, str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def inside(folder: str | Path, name: str) -> Path:
    """A file that another file names, in the folder of that file; ValueError when it lies elsewhere, or links there."""
    place = Path(os.path.realpath(os.path.join(folder, name)))
    if not place.is_relative_to(os.path.realpath(folder)):
        raise ValueError("lies outside its folder")
    return place


def _most() -> int:
    try:
        return largest()
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a regular file; OSError otherwise."""
    with open_regular(path) as stream:
        return stream.read()


def read_text(path: str | Path) -> str:
    """The text of a regular file in UTF-8, unpacked under a name in ``.gz``; OSError, UnicodeDecodeError else."""
    raw = read_bytes(path)
    try:
        return (unpacked(raw) if Path(path).suffix == ".gz" else raw).decode("utf-8")
    except UnpackError as error:
        raise OSError(errno.EINVAL, f"is no sound gzip file ({error})", str(path)) from None


def unpacked(raw: bytes) -> bytes:
    """The bytes of a gzip file, of several members too; UnpackError when it is broken or unpacks to too much."""
    most = min(largest(), max(LEAST_UNPACKED, MOST_UNPACKED * len(raw)))
    content = bytearray()
    try:
        while raw:
            member = zlib.decompressobj(wbits=31)
            content += member.decompress(raw, most - len(content) + 1)
            if len(content) > most:
                raise UnpackError(f"unpacks to more than {most / 2**20:g} MB; unpack it yourself if that is right")
            if not member.eof:
                raise UnpackError("it ends before its end")
            raw = member.unused_data.lstrip(b"\0")  # padding that some programs write
    except zlib.error as error:
        raise UnpackError(str(error)) from None
    return bytes(content)
