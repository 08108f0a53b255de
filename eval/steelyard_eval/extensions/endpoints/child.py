"""A child process that is spoken to line by line, within a deadline and a bound of bytes; it ends when we do.

It is started without a shell, in a session of its own, so that it and all that it started can be killed together;
what left that session is killed, too, where a running parent leads to it (Linux).
What it writes to its standard error is read and dropped, but for the end, which says why it failed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from steelyard.base.errors import ConfigError, MachineError, shown
from steelyard.extensions.network.endpoint import LARGEST

GRACE = 1.0
"""Seconds in which the program may end by itself, once its input is closed."""
SAID = 2000
"""Bytes of its standard error that are kept."""
BLOCK = 2**16
MOST_FAMILY = 500
"""Processes that are looked for one by one, beside those of its group."""


class ChildError(Exception):
    """The program did not answer: why, and the last line that it `said`, as it is."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


@contextmanager
def started(command: Sequence[str]) -> Iterator[Child]:
    """The program while it runs; ConfigError for no command, MachineError where it cannot be started."""
    if os.name != "posix":
        raise MachineError("programs that are spoken to by lines are started on POSIX systems alone")
    try:
        process = subprocess.Popen(  # noqa: S603 -- the user's own command, without a shell
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except ValueError as error:
        raise ConfigError(f"the command cannot be started ({error}); correct it") from None
    except OSError as error:
        raise MachineError(
            f"{shown(command[0])} cannot be started ({error.strerror}); install it, or correct its name"
        ) from None
    child = Child(process)
    try:
        yield child
    finally:
        child.close()


def _opened_descendants(number: int) -> list[int]:
    """Handles of what a process started and is running, and of what these did; none where the system has none."""
    handles: list[int] = []
    waiting = [number] if hasattr(os, "pidfd_open") else []
    while waiting and len(handles) < MOST_FAMILY:
        parent = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                children = [int(child) for child in (task / "children").read_bytes().split()]
                waiting += children
                for child in children:
                    with suppress(ProcessLookupError):
                        handles.append(os.pidfd_open(child))
    return handles


class Child:
    """A running program; `line` raises ChildError for no whole line within the time or the size."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._stdin, self._stdout, self._stderr = (
            cast(IO[bytes], pipe) for pipe in (process.stdin, process.stdout, process.stderr)
        )
        self._in, self._out, self._said = bytearray(), bytearray(), b""
        self._looked, self._left = 0, 2 * LARGEST
        self._pipes = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._pipes.register(self._stdout, selectors.EVENT_READ, self._read)
        self._pipes.register(self._stderr, selectors.EVENT_READ, self._hear)

    def send(self, line: bytes) -> None:
        """Queue a line, which is written while `line` waits."""
        if not self._out:
            self._pipes.register(self._stdin, selectors.EVENT_WRITE, self._write)
        self._out += line + b"\n"

    def allow(self) -> None:
        """Begin an exchange: from here on the program may write twice the largest answer."""
        self._left = 2 * LARGEST

    def line(self, until: float) -> bytes:
        """The next line, waited for until a time of the monotonic clock."""
        while (end := self._in.find(b"\n", self._looked)) < 0:
            self._looked = len(self._in)
            if self._looked > LARGEST or self._left < 0:
                raise ChildError(f"gave an answer of more than {LARGEST / 2**20:g} MB")
            for key, _ in self._pipes.select(self._time_left(until)):
                key.data()
        self._time_left(until)  # a flood of lines ends, too
        line = bytes(self._in[:end])
        del self._in[: end + 1]
        self._looked = 0
        return line

    def close(self) -> None:
        """End the program, and everything that it started, also in groups of their own."""
        self._pipes.close()
        family = _opened_descendants(self._process.pid)
        with suppress(OSError):
            self._stdin.close()
        until = time.monotonic() + GRACE
        try:
            while not self._ended() and time.monotonic() < until:
                time.sleep(0.01)
        finally:  # also where somebody presses Ctrl-C once more
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            for handle in family:
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)
        self._process.wait()
        self._stdout.close()
        self._stderr.close()

    def _ended(self) -> bool:
        """Whether the program has ended.

        It stays a zombie until all of its group are killed, so that the number of the group is still its own; but
        not on macOS before Python 3.13, nor where a host ignores its children (SIGCHLD).
        """
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _time_left(self, until: float) -> float:
        if (left := until - time.monotonic()) <= 0:
            raise ChildError("gave no whole answer in time")
        return left

    def _read(self) -> None:
        data = os.read(self._stdout.fileno(), BLOCK)
        self._in += data
        self._left -= len(data)
        if not data:
            self._pipes.unregister(self._stdout)
            said = self._last_words()
            raise ChildError("ended" if said else "ended without a word", said)

    def _hear(self) -> None:
        data = os.read(self._stderr.fileno(), BLOCK)
        self._said = (self._said + data)[-SAID:]
        if not data:
            self._pipes.unregister(self._stderr)

    def _last_words(self) -> str:
        """The last line of its standard error, which is waited for as long as it may take to end."""
        if self._out:
            self._pipes.unregister(self._stdin)
            self._out.clear()
        until = time.monotonic() + GRACE
        while self._pipes.get_map() and time.monotonic() < until and self._pipes.select(GRACE):
            self._hear()
        said = self._said.decode("utf-8", "replace")
        # Of what was cut off the first word may be the end of a key, which nobody would know.
        lines = (said.partition(" ")[2] if len(self._said) == SAID else said).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _write(self) -> None:
        with suppress(BlockingIOError):
            try:
                del self._out[: os.write(self._stdin.fileno(), self._out[:BLOCK])]
            except BrokenPipeError:  # what it says, or that it ends, tells why
                self._out.clear()
        if not self._out:
            self._pipes.unregister(self._stdin)
