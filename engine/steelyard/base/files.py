"""Files: read within bounds, written whole or not at all, and JSON with one form only.

Only regular files are read, no more bytes than are allowed, compressed or not: a name may lead anywhere, to a
pipe that never answers, to a device without end, to eight megabytes that unpack to eight gigabytes. Links are
followed to what they point at. Text is UTF-8, with or without a byte order mark.
"""

import codecs
import errno
import glob
import gzip
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, MachineError, quote

try:
    import fcntl as fcntl
except ImportError:  # Windows: there is no telling whose draft it is, so none is swept away
    fcntl = None  # type: ignore[assignment]  # there is no such module on Windows

MAX_NESTING = 64
"""Levels of lists and objects that a JSON file may have."""
LONGEST_INTEGER = 300
"""Digits; more are beyond the range of floats."""


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number; write a finite one")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal[:20]} is too large; write a smaller number")
    return value


def _whole(literal: str) -> int:
    if len(literal) > LONGEST_INTEGER:
        raise ValueError(f"{literal[:20]}... has {len(literal)} digits; write a smaller number")
    return int(literal)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"duplicate key {quote(twice)}; keep one of the two")
    return record


class _StrictDecoder(json.JSONDecoder):
    """Refuses what can be read here and overflows the stack of whoever prints or copies it."""

    def decode(self, text: str) -> Any:  # type: ignore[override]  # noqa: ANN401 -- any JSON value
        """The value; ValueError when it is not strict JSON."""
        value = super().decode(text)
        if text.count("[") + text.count("{") > MAX_NESTING and is_deep(value):
            raise ValueError(f"it is nested deeper than {MAX_NESTING}")
        return value


def is_deep(value: Any) -> bool:  # noqa: ANN401 -- a list or an object with whatever in it
    """Whether lists and objects are nested deeper than `MAX_NESTING`; what is neither is not."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_NESTING):
        parts = (part for node in level for part in (node.values() if isinstance(node, dict) else node))
        level = [part for part in parts if isinstance(part, dict | list)]
    return bool(level)


STRICT_JSON = _StrictDecoder(
    parse_constant=_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=_object
)
"""Reads JSON as its standard says: no NaN, no Infinity, no number that overflows, no key twice in one object, and
nothing nested deeper than `MAX_NESTING` (ValueError)."""


def data(package: str | None, name: str) -> Any:  # noqa: ANN401 -- any JSON value
    """What a file of JSON holds that comes with a package."""
    return STRICT_JSON.decode(resources.files(package or "").joinpath(name).read_text("utf-8"))


_CONTROLS = re.compile("[\x7f-\x9f]")
"""Control characters that json does not escape; a terminal that shows the file would obey them."""


def canonical(record: object) -> str:
    """JSON with sorted keys, an indent of 2 and escaped control characters; no NaN. Same value, same bytes."""
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=2)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def compact(record: object) -> str:
    """JSON with sorted keys on one line, for hashes and what only programs read; no NaN. Same value, same text."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_text(path: str | Path, text: str | bytes, *, private: bool = False) -> None:
    """Write UTF-8, or bytes, to a draft beside `path`, then rename it, so that no half file is left.

    ``*.gz`` is compressed. A `private` file is its owner's alone (0600), whatever it was.
    Raises MachineError when the folder cannot be written or the disk is full.
    """
    write_texts({Path(path): text}, private=private)


def write_texts(texts: Mapping[Path, str | bytes], *, private: bool = False) -> None:
    """Write several files as `write_text` does; all of them are complete before the first old one is replaced."""
    with ExitStack() as stack:
        places = {regular_target(path): text for path, text in texts.items()}
        drafts = [(stack.enter_context(draft(path)), path, text) for path, text in places.items()]
        for part, path, text in drafts:
            data = text.encode() if isinstance(text, str) else text
            if private:
                part.chmod(0o600)
            write_bytes(part, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
            with suppress(
                FileNotFoundError
            ):  # a file that is replaced keeps who may read it, and if we may, whose it is
                status, ours = path.stat(), part.stat()
                if not private:
                    part.chmod(stat.S_IMODE(status.st_mode))
                    if (status.st_uid, status.st_gid) != (ours.st_uid, ours.st_gid):
                        with suppress(PermissionError):
                            os.chown(part, status.st_uid, status.st_gid)
        for part, path, _ in drafts:
            part.replace(path)


def backup_path(file: Path) -> Path:
    """Where what a file holds is kept before it is replaced: beside it, as ``name.json.bak``."""
    return file.with_name(f"{file.name}.bak")


def regular_target(path: Path) -> Path:
    """Where a file is written: what a link points at. MachineError when that is something else, or nothing."""
    target = Path(os.path.realpath(path))
    if (target.exists() and not target.is_file()) or (path.is_symlink() and not target.exists()):
        what = "is not a regular file" if target.exists() else "is a broken link"
        raise MachineError(f"{quote(str(path), PATH_WIDTH)} {what}; name a file to write")
    return target


def write_bytes(path: Path, *chunks: bytes | memoryview) -> None:
    """Write a file down to the disk: a disk that turns out to be full is told here, not after the rename."""
    with path.open("wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def draft(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder beside `target`, to be filled and then moved there; what is not moved is removed.

    A draft is locked while its writer lives. Drafts of this target that nobody locks were left by a
    process that was killed, and are removed first. Raises MachineError for any OSError inside.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_drafts(target)
        path, handle = _new(target, folder)
        try:
            yield path
        finally:
            _remove(path)
            if handle is not None:
                os.close(handle)
    except OSError as error:
        # numpy and others raise without a number: "6700 requested and 6128 written"
        reason = error.strerror or f"{error}, the disk may be full"
        raise MachineError(
            f"cannot write {quote(str(target), PATH_WIDTH)}: {reason}; free space or check permissions"
        ) from None


def _new(target: Path, folder: bool) -> tuple[Path, int | None]:
    """A draft of a name of its own, and its lock; another one when it was swept before it was locked."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        if folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
        try:
            handle = lock(path)
        except (FileNotFoundError, BlockingIOError):
            continue
        except OSError:
            return path, None  # no locks on this file system: drafts of the dead stay
        if path.exists():
            return path, handle
        os.close(handle)


def lock(path: Path) -> int:
    """Lock a file or folder for as long as this process lives; OSError when it is locked, gone, or cannot be."""
    if fcntl is None:
        raise OSError("this system has no locks that end with their process")
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def remove_drafts(target: Path) -> None:
    """Remove the drafts of a target that a process left which was killed."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError):
            handle = lock(left)
            _remove(left)
            os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # a draft that stays is swept next time
            path.unlink(missing_ok=True)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """STEELYARD_CACHE, else ``steelyard`` in the user's cache folder; MachineError where there is none."""
    folder = environ.get("STEELYARD_CACHE", "")
    home = environ.get("XDG_CACHE_HOME", "")
    try:
        return Path(folder) if folder else (Path(home) if home else Path.home() / ".cache") / "steelyard"
    except RuntimeError:  # no HOME, and no user of this number
        raise MachineError("there is no home folder for caches; set STEELYARD_CACHE") from None


LIMIT = "STEELYARD_LARGEST_FILE_MB"
"""Names the megabytes that a file may have; 4096 without it."""
LEAST_UNPACKED, MOST_UNPACKED = 64 * 2**20, 200
"""A compressed file may unpack to this many bytes, or to this many times its size."""
READ_BYTES = 2**20


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
    return int(asked or 4096) * 2**20


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
        while block := stream.read(READ_BYTES):
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
        stream = io.BufferedReader(_Unpacking(stream, os.fstat(stream.fileno()).st_size), READ_BYTES)
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
        self._left = self._most = min(largest(), max(LEAST_UNPACKED, MOST_UNPACKED * size))

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
