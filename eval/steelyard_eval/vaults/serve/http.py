"""The server over HTTP: on this machine alone, for whoever has its token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import uvicorn

from steelyard.base.errors import ConfigError, MachineError
from steelyard_eval.vaults.serve.server import MemoryServer

HOST = "127.0.0.1"
PATH = "/mcp"
TOKEN = "STEELYARD_SERVE_TOKEN"  # noqa: S105 -- the name of a variable
SHORTEST = 16
"""Characters of a token that is given."""
LARGEST = 2**20
"""Bytes of a request."""
MOST_AT_ONCE = 64
"""Connections; others are turned away."""


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

    def __init__(self, app: Any, token: str, port: int) -> None:  # noqa: ANN401 -- an ASGI application
        self._app = app
        self._token = f"Bearer {token}".encode()
        self._hosts = {f"{name}:{port}".encode() for name in (HOST, "localhost", "[::1]")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 -- as ASGI has them
        """An ASGI application."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and (status := self._status(scope)) == 0):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    def _status(self, scope: Any) -> int:  # noqa: ANN401 -- as above
        """0 for who may pass, else the status of an empty answer."""
        given = [(name.lower(), value) for name, value in scope["headers"]]
        hosts, origins, keys = (
            [v for n, v in given if n == name] for name in (b"host", b"origin", b"authorization")
        )
        if len(hosts) != 1 or hosts[0] not in self._hosts or any(one not in self._origins for one in origins):
            return 403
        return 0 if len(keys) == 1 and hmac.compare_digest(keys[0], self._token) else 401


async def over_http(server: MemoryServer, port: int, token: str) -> None:
    """Serve clients on a port of this machine until interrupted; MachineError where the port is taken."""
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, json_response=True, host=HOST, max_request_body_size=LARGEST
    )
    settings = uvicorn.Config(
        TokenGate(app, token, port),
        host=HOST,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        ws="none",
    )
    try:
        await uvicorn.Server(settings).serve()
    except SystemExit:
        raise MachineError(f"port {port} of this machine cannot be served on; choose another one") from None
