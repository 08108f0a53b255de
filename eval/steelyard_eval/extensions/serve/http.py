"""Runs a server: over HTTP on this machine alone, for whoever has its token, or over standard input and output."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import anyio
import uvicorn
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from steelyard.base.errors import ConfigError, MachineError, shown
from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.memory import Memory, Served
from steelyard_eval.extensions.serve.server import MemoryServer
from steelyard_eval.extensions.serve.tools import Face

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
PATH = "/mcp"
TOKEN = "STEELYARD_SERVE_TOKEN"  # noqa: S105 -- the name of a variable
SHORTEST = 16
"""Characters of a token that is given."""
LARGEST = 2**20
"""Bytes of a request."""
MOST_AT_ONCE = 64
"""Connections; of more the one that has asked nothing for longest is closed."""
IDLE, MOST_SESSIONS = 900.0, 1000
"""Seconds after which a session that asks nothing ends, and sessions at once; a client then begins a new one."""
FAREWELL = 5
"""Seconds in which what is being answered may end, when the server is stopped."""
GONE = (ClientDisconnect, ConnectionError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
"""What libraries raise when a client leaves, or ends its session, before it is answered."""
_log = logging.getLogger("steelyard.serve")
PATIENCE = 10.0
"""Seconds in which a connection has to ask something: all of its headers."""


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


class PatientProtocol(H11Protocol):
    """A connection that is closed when it asks nothing for long, or when it waits in the place of others."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait, and close who waited longest where there are too many."""
        super().connection_made(transport)
        self._asked: object = self
        self._waits_since = self.loop.time()
        self._look()
        if len(self.connections) > MOST_AT_ONCE:
            others = (peer for peer in self.connections if isinstance(peer, PatientProtocol) and peer is not self)
            waiting = [peer for peer in others if peer.waits]
            if waiting:
                oldest = min(waiting, key=lambda peer: peer._waits_since)
                self.connections.discard(oldest)
                oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """Whether it has asked nothing that is still to be answered."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Close what waits since the last look; uvicorn itself closes what waits five seconds after an answer."""
        if self.waits and self._asked is self.cycle:
            self.transport.abort()
            return
        self._asked = self.cycle
        self._timer = self.loop.call_later(PATIENCE, self._look)


class OneLine(logging.Handler):
    """Says in a line what libraries log with a traceback; of clients that leave, that they left."""

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, GONE):
            _log.info("a client left before it was answered")
        else:
            _log.warning("%s", shown(f"{record.getMessage()} {error or ''}".strip(), 500))


def _in_lines() -> None:
    """Let libraries log by `OneLine`."""
    handler = OneLine(logging.WARNING)
    for name in ("mcp", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False


def app_of(server: MemoryServer) -> Starlette:
    """The server as an application, whose sessions end when they are idle."""
    return server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        host=HOST,
        max_request_body_size=LARGEST,
        session_idle_timeout=IDLE,
        max_sessions=MOST_SESSIONS,
    )


async def over_http(server: MemoryServer, port: int, token: str) -> None:
    """Serve clients on a port of this machine until interrupted; MachineError where the port is taken."""
    _in_lines()
    settings = uvicorn.Config(
        TokenGate(app_of(server), token, port),
        host=HOST,
        port=port,
        log_config=None,
        timeout_graceful_shutdown=FAREWELL,
        access_log=False,
        server_header=False,
        limit_concurrency=2 * MOST_AT_ONCE,
        http=PatientProtocol,
        ws="none",
    )
    try:
        await uvicorn.Server(settings).serve()
    except SystemExit:
        raise MachineError(f"port {port} of this machine cannot be served on; choose another one") from None


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
    server = MemoryServer(Memory(served), face, log, client)
    try:
        if port is None:
            asyncio.run(server.over_stdio())
        else:
            tell(f"http://{HOST}:{port}{PATH}", token, new)
            asyncio.run(over_http(server, port, token))
    finally:
        server.close()
