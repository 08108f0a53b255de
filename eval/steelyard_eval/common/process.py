"""What surrounds a command: the memory it may take, its clock, its state folder, Ctrl-C.

The system counts what the process allocates (RLIMIT_DATA, which Linux has); files that are mapped do not count.
Beyond the limit an allocation fails, and the command ends with one message.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from steelyard.base.errors import ConfigError, quote
from steelyard.base.machine import MEMORY, memory_bytes

try:
    import resource
except ImportError:  # Windows: nothing is bounded
    resource = None  # type: ignore[assignment]  # there is no such module on Windows

MIN_MEMORY_BYTES = 512 * 2**20  # bytes; the program itself takes about 250 MB
SIZE = re.compile(r"([0-9]{1,9})([MG])i?B?", re.IGNORECASE | re.ASCII)


def usual() -> int:
    """The bytes that a command may take where nothing is said: three quarters of the machine's memory."""
    return max(MIN_MEMORY_BYTES, memory_bytes() * 3 // 4)


def read_size(text: str) -> int:
    """The bytes of a size such as 800M or 4G; ValueError for another text and below `MIN_MEMORY_BYTES`.

    >>> read_size("2G") == 2 * 2**30
    True
    """
    match = SIZE.fullmatch(text)
    size = int(match[1]) * 2 ** {"M": 20, "G": 30}[match[2].upper()] if match else 0
    if size < MIN_MEMORY_BYTES:
        raise ValueError(f"write it as 800M or 4G, {MIN_MEMORY_BYTES >> 20}M or more")
    return size


@contextmanager
def bounded(size: int | None) -> Iterator[None]:
    """Inside, this process and those that it starts may take `size` bytes each; `usual` without one.

    A quarter of a size that was asked for is for what vaults keep in memory, unless the environment says how much.
    """
    exported = size is not None and MEMORY not in os.environ
    before = resource.getrlimit(resource.RLIMIT_DATA) if resource else (0, 0)
    if size is not None and exported:
        os.environ[MEMORY] = str(size >> 22)
    try:
        if resource and (size is not None or before[0] == resource.RLIM_INFINITY):
            resource.setrlimit(resource.RLIMIT_DATA, (size or usual(), before[1]))
        yield
    finally:
        if resource:
            resource.setrlimit(resource.RLIMIT_DATA, before)
        if exported:
            os.environ.pop(MEMORY, None)


NAME = "SOURCE_DATE_EPOCH"
LATEST = 253_402_300_799  # the last second of the year 9999


def source_date() -> int | None:
    """Return the seconds of the variable; None where it is unset or empty. ConfigError for what is no time."""
    text = os.environ.get(NAME, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LATEST):
        raise ConfigError(f"{NAME} {quote(text)} is not a whole number of seconds from 0 to {LATEST}; unset it")
    return int(text)


def checked_source_date() -> None:
    """Refuse a bad time before libraries read it as they load, and unset an empty one, on which they fail."""
    if source_date() is None:
        os.environ.pop(NAME, None)


INTERRUPTED = "interrupted; what was committed is kept, run the command again to go on"


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: extensions written in C raise SystemError where it falls into them."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind is not None


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """In XDG_STATE_HOME, else ~/.local/state."""
    home = environ.get("XDG_STATE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state") / "steelyard"


def day(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files; ConfigError when that is no time."""
    given = source_date()
    return datetime.fromtimestamp(now() if given is None else given, UTC).date().isoformat()


def cloned(folder: Path) -> str:
    """The commit of a clone, as pip takes it from its origin; empty where files differ, or it is not there."""
    import subprocess  # for one command alone

    if not (folder / ".git").exists() or not (git := shutil.which("git")):
        return ""
    asked = ("remote get-url origin", "rev-parse HEAD", "branch -r --contains HEAD", "status --porcelain -uno")
    run = partial(subprocess.run, cwd=folder, capture_output=True, text=True, check=False)
    origin, commit, pushed, changed = (run([git, *words.split()]).stdout.strip() for words in asked)
    return f"git+{origin}@{commit}" if pushed and not changed else ""
