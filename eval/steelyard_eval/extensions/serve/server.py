"""The server: tools over a memory, by the official SDK, over standard input and output or over HTTP.

Over HTTP it listens on this machine alone: the SDK refuses other hosts and pages of other origins, and whoever has
not the token gets a status and nothing else.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as Listed

from steelyard import __version__
from steelyard.base.errors import ConfigError, MachineError, SteelyardError, shown
from steelyard_eval.extensions.serve.caller import Caller, Recent, ServerLog
from steelyard_eval.extensions.serve.memory import Memory, Served
from steelyard_eval.extensions.serve.tools import Tool, tools
from steelyard_eval.vaults.read import OpenVault

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

MOST_CLIENTS = 256
"""Clients whose lists are remembered; the one that was silent longest is forgotten first."""
LONGEST_NAME = 200
HOST, PATH = "127.0.0.1", "/mcp"
TOKEN = "STEELYARD_SERVE_TOKEN"  # noqa: S105 -- the name of a variable
SHORTEST = 16
"""Characters of a token that is given."""
LARGEST = 2**20
"""Bytes of a request over HTTP."""
MOST_AT_ONCE = 128
"""Connections; more are refused."""
IDLE, MOST_SESSIONS = 900.0, 1000
"""Seconds after which a session that asks nothing ends, and sessions at once; a client then begins a new one."""
FAREWELL = 5
"""Seconds in which what is being answered may end, when the server is stopped."""
_log = logging.getLogger(__name__)
Context = ServerRequestContext[object, object]


class MemoryServer:
    """The tools over a memory, with a log of searches and acts where there is one.

    `client` is what the log calls whoever asks; by default the name that the client gives itself.
    """

    def __init__(self, memory: Memory, log: ServerLog | None = None, client: str = "") -> None:
        self._memory, self._log, self._client = memory, log, client
        self._tools = {name: tool for name, tool in tools().items() if log is not None or not tool.logs}
        self._shown: OrderedDict[str, Recent] = OrderedDict()
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix="steelyard-renewing")
        self._renewing = asyncio.Lock()
        self.protocol = Server("steelyard", version=__version__, on_list_tools=self._list, on_call_tool=self._call)
        self.protocol.middleware.clear()  # the SDK's tracing: nothing is measured by anybody but us

    async def over_stdio(self) -> None:
        """Serve one client until it closes our standard input."""
        async with stdio_server() as (incoming, outgoing):
            await self.protocol.run(incoming, outgoing, self.protocol.create_initialization_options())

    def close(self) -> None:
        """Close the memory."""
        self._keeper.shutdown()
        self._memory.close()

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Listed(name=tool.name, description=tool.about, input_schema=dict(tool.schema))
                for tool in self._tools.values()
            ]
        )

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            return _failed(f"there is no tool {shown(params.name)} here; this server reads only: {known}")
        if self._memory.changed():
            await self._renew()
        now = self._memory.now
        work = partial(_answer, self._caller(context, now.vault), tool, dict(params.arguments or {}))
        return await asyncio.get_running_loop().run_in_executor(now.pool, work)

    def _caller(self, context: Context, vault: OpenVault) -> Caller:
        """Who asks, with what this session was shown lately."""
        params = context.session.client_params
        name = self._client or (params.client_info.name[:LONGEST_NAME] if params is not None else "")
        headers = getattr(context.request, "headers", None)
        session = headers.get("mcp-session-id", "") if headers is not None else ""
        key = f"{session}\n{name}"
        recent = self._shown[key] = self._shown.pop(key, Recent())
        if len(self._shown) > MOST_CLIENTS:
            self._shown.popitem(last=False)
        return Caller(name, recent, vault, self._log)

    async def _renew(self) -> None:
        """Open what changed, once, whoever asks first."""
        async with self._renewing:
            if not self._memory.changed():
                return
            new = await asyncio.get_running_loop().run_in_executor(self._keeper, self._memory.renewed)
            if new is not None:
                self._memory.exchange(new)


def _answer(caller: Caller, tool: Tool, arguments: dict[str, object]) -> CallToolResult:
    """One call, in a thread that searches."""
    try:
        value = tool.answer(caller, tool.checked(arguments))
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except SteelyardError as error:
        return _failed(str(error))
    except Exception:  # a fault of ours ends one call, and says nothing of the machine to the client
        _log.exception("a call of %s failed; please report it", tool.name)
        return _failed("this is a fault of the server, which has logged it")
    return CallToolResult(content=[TextContent(type="text", text=text)])


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def token_of(environ: Mapping[str, str]) -> tuple[str, bool]:
    """The token that the environment gives, or a new one, and whether it is new; ConfigError for a short one."""
    given = environ.get(TOKEN, "")
    if given and (len(given) < SHORTEST or not given.isascii() or not given.isprintable()):
        raise ConfigError(
            f"{TOKEN} has less than {SHORTEST} printable characters of ASCII; give more, or unset it"
        )
    return given or secrets.token_urlsafe(24), not given


class TokenGate:
    """Lets through who has the token; others get a status."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""
        keys = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        if scope["type"] == "lifespan" or (len(keys) == 1 and hmac.compare_digest(keys[0], self._token)):
            await self._app(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})


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
    settings = uvicorn.Config(
        TokenGate(app_of(server), token),
        host=HOST,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=FAREWELL,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        ws="none",
    )
    try:
        await uvicorn.Server(settings).serve()
    except SystemExit:
        raise MachineError(f"port {port} of this machine cannot be served on; choose another one") from None


def run(
    served: Served,
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
    server = MemoryServer(Memory(served), log, client)
    try:
        if port is None:
            asyncio.run(server.over_stdio())
        else:
            tell(f"http://{HOST}:{port}{PATH}", token, new)
            asyncio.run(over_http(server, port, token))
    finally:
        server.close()
