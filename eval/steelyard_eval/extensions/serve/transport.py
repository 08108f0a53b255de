"""Runs a server: over standard input and output, or over HTTP on this machine alone, for whoever has its token."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, cast

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from pydantic_core import from_json

from steelyard.base.errors import ConfigError, MachineError
from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.server import MemoryServer, Served
from steelyard_eval.extensions.serve.tools import Face

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LONGEST = 2**22
"""Bytes of a message over pipes; a longer line is answered as one that cannot be read."""
_ID = re.compile(r'"id"\s*:\s*("[^"\\]{1,200}"|-?[0-9]{1,15}(?![0-9.eE]))')
HEAD = 2**12
"""Characters of a message in which its id is looked for."""
HOST, PATH = "127.0.0.1", "/mcp"
TOKEN = "STEELYARD_SERVE_TOKEN"  # noqa: S105 -- the name of a variable
SHORTEST = 16
"""Characters of a token that is given."""
LARGEST = 2**20
"""Bytes of a request."""
MOST_AT_ONCE = 128
"""Connections; of more each gets a status."""
IDLE, MOST_SESSIONS = 900.0, 1000
"""Seconds after which a session that asks nothing ends, and sessions at once; a client then begins a new one."""
FAREWELL = 5
"""Seconds in which what is being answered may end, when the server is stopped."""


def run(
    served: Served,
    face: Face,
    log: ServerLog | None,
    client: str,
    port: int | None,
    tell: Callable[[str, str, bool], None],
) -> None:
    """Serve over standard input and output, or on a port, to the end.

    `tell` is called with the address, the token and whether that is new, once it is sure that there is a memory.
    Raises SteelyardError where there is none, and MachineError for a port that is taken.
    """
    token, new = token_of(os.environ) if port is not None else ("", False)
    server = MemoryServer(served, face, log, client)
    try:
        if port is None:
            asyncio.run(_over_stdio(server))
        else:
            tell(f"http://{HOST}:{port}{PATH}", token, new)
            asyncio.run(_over_http(server, port, token))
    finally:
        server.close()


async def _over_stdio(server: MemoryServer) -> None:
    """Serve one client until it closes our standard input; what anybody prints goes to the standard error."""
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", _lines())) as (incoming, outgoing):
        await server.protocol.run(incoming, outgoing, server.protocol.create_initialization_options())


async def _lines() -> AsyncIterator[str]:
    """Lines of the standard input, of a bounded length; the rest of a longer one is no message."""
    pipe = sys.stdin.buffer
    while line := await anyio.to_thread.run_sync(pipe.readline, LONGEST, abandon_on_cancel=True):
        yield readable(line)


def readable(line: bytes) -> str:
    r"""A message as the SDK reads it. It leaves one that it cannot read without an answer, and who asked waits.

    Half a surrogate pair becomes a question mark. Of what is no JSON, or nested too deep, a request for nothing
    is made with its id, so that it is refused.

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
            match = _ID.search(text, 0, HEAD)
            return f'{{"jsonrpc": "2.0", "id": {match[1]}, "method": "unreadable"}}' if match else "unreadable"
    return text


def token_of(environ: Mapping[str, str]) -> tuple[str, bool]:
    """The token that the environment gives, or a new one, and whether it is new; ConfigError for a short one."""
    given = environ.get(TOKEN, "")
    if given and (len(given) < SHORTEST or not given.isascii() or not given.isprintable()):
        raise ConfigError(
            f"{TOKEN} has less than {SHORTEST} printable characters of ASCII; give more, or unset it"
        )
    return given or secrets.token_urlsafe(24), not given


class TokenGate:
    """Lets through who asks at this machine's own name, from no other site, with the token; others get nothing."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()
        self._hosts = {f"{name}:{port}".encode() for name in (HOST, "localhost", "[::1]")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and (status := self._status(scope)) == 0):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    def _status(self, scope: Scope) -> int:
        """0 for who may pass, else the status of an empty answer."""
        given = [(name.lower(), value) for name, value in scope["headers"]]
        hosts, origins, keys = (
            [v for n, v in given if n == name] for name in (b"host", b"origin", b"authorization")
        )
        if len(hosts) != 1 or hosts[0] not in self._hosts or not self._origins.issuperset(origins):
            return 403
        return 0 if len(keys) == 1 and hmac.compare_digest(keys[0], self._token) else 401


async def _over_http(server: MemoryServer, port: int, token: str) -> None:
    """Serve clients on a port of this machine until interrupted; MachineError where the port is taken."""
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they log a traceback for each client that leaves
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        host=HOST,
        max_request_body_size=LARGEST,
        session_idle_timeout=IDLE,
        max_sessions=MOST_SESSIONS,
    )
    settings = uvicorn.Config(
        TokenGate(app, token, port),
        host=HOST,
        port=port,
        log_config=None,
        timeout_graceful_shutdown=FAREWELL,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        http="h11",
        ws="none",
    )
    try:
        await uvicorn.Server(settings).serve()
    except SystemExit:
        raise MachineError(f"port {port} of this machine cannot be served on; choose another one") from None
