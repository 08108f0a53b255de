"""The one door for files that are read: regular files only, no more bytes than are allowed, compressed or not.

Text is UTF-8, with or without a byte order mark.

A name may lead anywhere: to a pipe that never answers, to a device without end, to eight megabytes that unpack to
eight gigabytes. Links are followed to what they point at.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT = "STEELYARD_LARGEST_FILE_MB"
"""The variable that sets another size."""
LARGEST_MB = 4096
LEAST_UNPACKED, MOST_UNPACKED = 64 * 2**20, 200
"""A compressed file may unpack to this many bytes, or to this many times its size."""
BLOCK = 2**20
"""Bytes that are read at once."""


class UnpackError(OSError):
    """A compressed file that is broken, or unpacks to too much: the `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EINVAL, f"is not a sound gzip file ({reason})")
        self.reason = reason


def largest() -> int:
    """Bytes that a file may have; OSError when the environment asks for no number."""
    asked = os.environ.get(LIMIT, "").strip()
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        raise OSError(errno.EINVAL, f"{LIMIT} is not a whole number of megabytes")
    return int(asked or LARGEST_MB) * 2**20


def budget(size: int) -> int:
    """Bytes that a compressed file of so many may unpack to."""
    return min(largest(), max(LEAST_UNPACKED, MOST_UNPACKED * size))


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a regular file for reading; OSError for anything else, at once, and for a file that is too large."""
    # Without O_NONBLOCK a pipe that nobody writes would be waited for here.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        if status.st_size > (most := largest()):
            reason = f"has more than {most / 2**20:g} MB; set {LIMIT} to read it"
            raise OSError(errno.EFBIG, reason, str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        with suppress(OSError):  # an interrupt may come when the stream that owns it is gone already
            os.close(handle)
        raise


def inside(folder: str | Path, name: str) -> Path:
    """A file that another one names, in the folder of that one; ValueError when it lies, or leads, elsewhere."""
    place = Path(os.path.realpath(Path(folder, name)))
    if not place.is_relative_to(os.path.realpath(folder)):
        raise ValueError("lies outside its folder")
    return place


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a regular file; OSError otherwise."""
    with open_regular(path) as stream:
        return stream.read()


def read_text(path: str | Path) -> str:
    """The text of a regular file in UTF-8, unpacked under a name in ``.gz``; OSError, UnicodeDecodeError else."""
    with open_unpacked(path) as stream:
        return stream.read().decode("utf-8")


def lines(path: str | Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, numbered from 1; it is unpacked under a name in ``.gz``.

    Of a line that is longer than `longest` bytes so many and one more are given. Raises OSError.
    """
    number, rest = 0, b""
    with open_unpacked(path) as stream:
        while block := stream.read(BLOCK):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                if line and not line.isspace():
                    yield number, line[: longest + 1]
            rest = rest[: longest + 1]
    if rest and not rest.isspace():
        yield number + 1, rest


def open_unpacked(path: str | Path) -> io.BufferedReader:
    """Open a regular file of text behind its byte order mark, unpacked under a name in ``.gz``; OSError else."""
    stream = open_regular(path)
    if Path(path).suffix == ".gz":
        stream = io.BufferedReader(_Unpacking(stream, os.fstat(stream.fileno()).st_size), BLOCK)
    try:
        if stream.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
    except BaseException:
        stream.close()
        raise
    return stream


def unpacked(raw: bytes) -> bytes:
    """The bytes of a gzip file, of several members too; UnpackError when it is broken or unpacks to too much."""
    return _Unpacking(io.BytesIO(raw), len(raw)).readall()


class _Unpacking(io.RawIOBase):
    """A gzip file of so many bytes, unpacked up to its budget while it is read."""

    def __init__(self, packed: io.BufferedIOBase, size: int) -> None:
        self._packed, self._unpacked = packed, gzip.GzipFile(fileobj=packed)
        self._left = self._most = budget(size)

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Close the packed file, too."""
        self._packed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- whatever io gives to fill
        """Some bytes; 0 at the end. UnpackError, see `unpacked`."""
        try:
            data = self._unpacked.read1(len(buffer))
        except (zlib.error, gzip.BadGzipFile, EOFError) as error:
            raise UnpackError(str(error)) from None
        self._left -= len(data)
        if self._left < 0:
            most = f"{self._most / 2**20:g} MB"
            raise UnpackError(f"unpacks to more than {most}; unpack it yourself if that is right")
        buffer[: len(data)] = data
        return len(data)
