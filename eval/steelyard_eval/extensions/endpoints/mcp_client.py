"""Speaks to an MCP server that it starts, over its standard input and output: JSON-RPC 2.0, a message a line.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports. The official SDK is not used,
because its reader bounds neither the length of a line nor the size of a message. The server is started without a
shell, in a session of its own, so that it and all of its group can be killed together. Of what it writes to its
standard error the end is kept, which says why it failed.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from queue import Empty, Queue
from typing import IO, Any, cast

from steelyard.base.errors import ConfigError, DataError, MachineError, quote
from steelyard.extensions.network.endpoint import LARGEST
from steelyard_eval.extensions.endpoints.answer_form import json_of

PROTOCOL = "2025-06-18"  # The version that we speak; servers answer with the one that they do
PAGES = 50  # Pages of the list of tools that are read
GRACE = 1.0  # Seconds in which the server may end by itself, once its input is closed
PAUSE = 0.01  # Seconds between looks at a server that does not read
SAID = 2000  # Bytes of its standard error that are kept
WAITING = 4  # Lines that are read ahead of the one that is waited for
REFUSED = {"code": -32601, "message": "this client answers nothing but ping"}


class McpClient:
    """A server that is running, and the conversation with it.

    DataError for a refusal and what is no message, MachineError for no answer, in words of `place` and `told`.
    """

    def __init__(self, process: subprocess.Popen[bytes], place: str, told: Callable[..., str]) -> None:
        self._process, self._said, self._place, self._told = process, b"", place, told
        self._in = cast(IO[bytes], process.stdin)
        os.set_blocking(self._in.fileno(), False)
        self._lines: Queue[bytes] = Queue(WAITING)
        self._ended = threading.Event()
        self._number, self._left = 0, 0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._hear)]
        for thread in self._threads:
            thread.start()

    def greet(self, until: float) -> None:
        """Begin the conversation."""
        client = {"name": "steelyard", "version": "1"}
        self.call("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}, until)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, until)

    def tools(self, until: float) -> Iterator[dict[str, Any]]:
        """The tools of the server that have a name, page by page."""
        cursor = None
        for _ in range(PAGES):
            page = self.call("tools/list", {} if cursor is None else {"cursor": cursor}, until)
            page = page if isinstance(page, dict) else {}
            tools = page.get("tools")
            for tool in tools if isinstance(tools, list) else []:
                if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                    yield tool
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return

    def call(self, method: str, params: Mapping[str, Any], until: float, about: str = "") -> Any:  # noqa: ANN401 -- JSON
        """The result of a request, until a time of the monotonic clock; `about` says in messages what it asked."""
        self._number += 1
        self._left = 2 * LARGEST
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, until)
        while True:
            message = self._message(until, about)
            if "method" in message and "id" in message:
                reply = {"result": {}} if message["method"] == "ping" else {"error": REFUSED}
                self._send({"jsonrpc": "2.0", "id": message["id"], **reply}, until)
            elif "method" not in message and message.get("id") == self._number:
                break
        if "error" in message:
            raise DataError(f"{self._place}{about}: refuses {method}: {self._told(message['error'])}")
        return message.get("result")

    def _message(self, until: float, about: str) -> dict[str, Any]:
        """The next message; other lines, which some servers print by mistake, are passed over."""
        while True:
            line = self._line(until, about)
            if line.lstrip().startswith(b"{"):
                text = line.decode("utf-8", "replace")
                message = json_of(text)
                if not isinstance(message, dict):
                    what = f"answered with {self._told(text)}, which is no message or has too many parts"
                    raise DataError(f"{self._place}{about}: {what}")
                return message

    def _line(self, until: float, about: str) -> bytes:
        why, said = "", ""
        try:
            if (left := until - time.monotonic()) <= 0:  # whatever it sends
                raise Empty
            line = self._lines.get(timeout=left)
            self._left -= len(line)
            if not line:
                said = self._last_words()
                why = "ended" if said else "ended without a word"
            elif len(line) > LARGEST or self._left < 0:
                why = f"gave an answer of more than {LARGEST / 2**20:g} MB"
        except Empty:
            why = "gave no whole answer in time"
        if why:
            told = f" ({self._told(said, 200)})" if said else ""
            raise MachineError(f"{self._place}{about} {why}{told}; start its server by hand to see why")
        return line

    def _read(self) -> None:
        """Read lines ahead in a thread of its own; an empty one is the end."""
        with cast(BufferedReader, self._process.stdout) as pipe:
            line = b" "
            while line and not self._ended.is_set():
                line = pipe.readline(LARGEST + 1)
                self._lines.put(line)

    def _hear(self) -> None:
        """Keep the end of what it writes to its standard error, in another thread."""
        with cast(BufferedReader, self._process.stderr) as pipe:
            while said := pipe.read1():
                self._said = (self._said + said)[-SAID:]

    def _send(self, message: Mapping[str, Any], until: float) -> None:
        """Write a message; of a server that does not read, what it takes in time."""
        line = json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n"
        with suppress(BrokenPipeError):  # what it says, or that it ends, tells why
            while line and time.monotonic() < until:
                try:
                    line = line[os.write(self._in.fileno(), line) :]
                except BlockingIOError:
                    time.sleep(PAUSE)

    def _last_words(self) -> str:
        self._threads[1].join(GRACE)
        said = self._said.decode("utf-8", "replace")
        # Of what was cut off the first word may be the end of a key, which nobody would know.
        lines = (said.partition(" ")[2] if len(self._said) == SAID else said).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """End the server and all of its group."""
        try:
            self._in.close()
            self._threads[0].join(GRACE)  # its output ends with it; no other has its number before it is reaped
        finally:  # also where somebody presses Ctrl-C once more
            self._ended.set()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with suppress(Empty):
            self._lines.get_nowait()  # room for the last line that is read, without which its thread would wait
        for thread in self._threads:  # what was cut loose from the group may hold them open
            thread.join(GRACE)


@contextmanager
def started(command: Sequence[str], place: str, report: Callable[..., str]) -> Iterator[McpClient]:
    """The server while it runs; ConfigError for no command, MachineError where it cannot be started."""
    if os.name != "posix":
        raise MachineError("MCP servers over stdio need a POSIX system")
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(  # noqa: S603 -- the user's own command, without a shell
            list(command), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except ValueError as error:
        raise ConfigError(f"the command cannot be started ({error}); correct it") from None
    except OSError as error:
        raise MachineError(
            f"{quote(command[0])} cannot be started ({error.strerror}); install it, or correct its name"
        ) from None
    client = McpClient(process, place, report)
    try:
        yield client
    finally:
        client.close()
