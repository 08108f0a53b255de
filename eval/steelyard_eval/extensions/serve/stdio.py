"""Standard input and output of the server: lines of a bounded length, without a thread for each of them.

The SDK's own streams hand every line to a thread and read lines of any length. They are used where the input is no
pipe: a terminal, or a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server
from pydantic_core import from_json

LARGEST = 2**22
"""Bytes of a message; a longer line is answered as one that cannot be read."""
HEAD = 2**12
"""Bytes of a longer line in which its id is looked for."""
_ID = re.compile(r'"id"\s*:\s*("[^"\\]{1,200}"|-?[0-9]{1,15}(?![0-9.eE]))')
PAUSE = 0.001
"""Seconds between two looks at whether a full pipe takes more."""


@asynccontextmanager
async def streams() -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's streams of messages over our standard input and output.

    Meanwhile what anybody prints goes to the standard error, and does not come between the messages.
    """
    sys.stdout.flush()
    if not stat.S_ISFIFO(mode := os.fstat(0).st_mode) and not stat.S_ISSOCK(mode):
        async with stdio_server() as both:
            yield both
        return
    wire = os.dup(1)
    os.dup2(2, 1)
    try:
        incoming, outgoing = cast("anyio.AsyncFile[str]", _lines()), cast("anyio.AsyncFile[str]", _Outgoing(wire))
        async with stdio_server(incoming, outgoing) as both:
            yield both
    finally:
        os.dup2(wire, 1)
        os.close(wire)


async def _lines() -> AsyncIterator[str]:
    """Lines of the standard input, as the SDK iterates over them."""
    reader = asyncio.StreamReader(limit=LARGEST)
    pipe = os.fdopen(os.dup(0), "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    head = b""
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                return
            line = error.partial
        except asyncio.LimitOverrunError as error:
            dropped = await reader.readexactly(error.consumed)
            head = head or dropped[:HEAD]
            continue
        yield unreadable(head.decode("utf-8", "replace")) if head else readable(line)
        head = b""


def readable(line: bytes) -> str:
    r"""A message as the SDK reads it. It leaves one that it cannot read without an answer, and who asked waits.

    Half a surrogate pair becomes a question mark, numbers without an end and deep nests a refusal.

    >>> readable(b'{"id": 1, "method": "ping", "x": "\\ud800"}')
    '{"id": 1, "method": "ping", "x": "?"}'
    """
    text = line.decode("utf-8", "replace")
    try:
        from_json(text)
    except ValueError:
        try:
            text = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
            from_json(text)
        except (ValueError, RecursionError):
            return unreadable(text)
    return text


def unreadable(text: str) -> str:
    """A request for nothing with the id of a message, so that it is refused; the message where it has none."""
    match = _ID.search(text)
    return f'{{"jsonrpc": "2.0", "id": {match[1]}, "method": "unreadable"}}' if match else "unreadable"


class _Outgoing:
    """The standard output, as the SDK writes to it."""

    def __init__(self, wire: int) -> None:
        self._wire = wire

    async def write(self, text: str) -> None:
        """All of the text; nothing, once nobody reads."""
        view = memoryview(text.encode("utf-8", "replace"))
        while view:
            try:
                view = view[os.write(self._wire, view) :]
            except BlockingIOError:
                await asyncio.sleep(PAUSE)
            except BrokenPipeError:
                return

    async def flush(self) -> None:
        """Nothing is kept back."""
