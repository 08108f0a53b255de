"""The server: a face over a memory that is opened again when its files change, by the official SDK."""

import asyncio
import hmac
import json
import logging
import os
import re
import secrets
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as Listed
from pydantic_core import from_json
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from steelyard import __version__
from steelyard.base.errors import ConfigError, MachineError, SteelyardError, quote
from steelyard_eval.extensions.serve.tool_call import LISTS_PER_CLIENT, Caller, Face, ServerLog, ShownList, Tool
from steelyard_eval.vaults.read import OpenVault, RankedBy

MOST_CLIENTS = 256  # Clients whose lists are remembered; the one that was silent longest is forgotten first
LONGEST_NAME = 200
_log = logging.getLogger(__name__)
Context = ServerRequestContext[object, object]
MAX_MESSAGE_BYTES = 2**22  # Bytes of a message over pipes; a longer line is answered as one that cannot be read
_ID = re.compile(r'"id"\s*:\s*("[^"\\]{1,200}"|-?[0-9]{1,15}(?![0-9.eE]))')
HOST, PATH = "127.0.0.1", "/mcp"
TOKEN = "STEELYARD_SERVE_TOKEN"  # noqa: S105 -- the name of a variable
SHORTEST = 16  # Characters of a token that is given
LARGEST = 2**20  # Bytes of a request
MOST_AT_ONCE = 128  # Connections; of more each gets a status
REQUEST_SECONDS = 10.0  # Seconds in which a connection has to ask something
IDLE, MOST_SESSIONS = 900.0, 1000  # Seconds after which a session that asks nothing ends, and sessions at once


@dataclass(frozen=True)
class Served:
    """What the command line names: the vault, its scopes, how it is searched, and what is interleaved.

    `share` is that of the searches, `against` the other ranking, drawn weights without one; for `hnsw` see
    `open_vault`, for `adaptive` and `log` `RankedBy.following`.
    """

    vault: str
    scopes: Sequence[str] = ()
    by: str = "echovault"
    share: float = 0.0
    against: str | None = None
    hnsw: int | None = None
    adaptive: bool | None = None
    log: str | None = None

    def opened(self) -> OpenVault:
        """Open all of it; SteelyardError where a file is not what it should be."""
        other = None if self.against is None else RankedBy.of(self.against)
        by = RankedBy.of(self.by).following(self.log, self.adaptive)
        vault = OpenVault(self.vault, self.scopes, by, (self.share, other) if self.share else None, self.hnsw)
        with vault.snapshot():  # connected now: later the file at the path may be another one, or none
            return vault

    @property
    def state(self) -> list[tuple[int, int, int]]:
        """What changes when somebody writes one of the files."""
        files = (self.vault, f"{self.vault}-wal", self.by, self.against)  # a system is no file, and never changes
        there = (Path(name).stat() for name in files if name is not None and Path(name).exists())
        return [(status.st_mtime_ns, status.st_size, status.st_ino) for status in there]


class MemoryServer:
    """A face over a memory, with a log of searches and acts where there is one.

    One thread opens, searches and logs, so that calls need no locks. `client` is what the log calls whoever asks;
    by default the name that the client gives itself.
    """

    def __init__(self, served: Served, face: Face, log: ServerLog | None = None, client: str = "") -> None:
        self._served, self._log, self._client = served, log, client
        self._lists: OrderedDict[str, deque[ShownList]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="steelyard-serve")
        self._looked = served.state
        self._vault = self._thread.submit(served.opened).result()
        self._face = face.ranked(RankedBy.of(served.by))
        self._tools = {tool.name: tool for tool in self._face.tools if log is not None or not tool.logs}
        told = self._face.instructions
        self.protocol = Server(
            "steelyard", version=__version__, instructions=told, on_list_tools=self._list, on_call_tool=self._call
        )
        self.protocol.middleware.clear()  # the SDK's tracing: nothing is measured by anybody but us

    def close(self) -> None:
        """Close the memory."""
        self._thread.submit(self._vault.close).result()
        self._thread.shutdown()

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        tools = self._tools.values()
        listed = [Listed(name=one.name, description=one.about, input_schema=dict(one.schema)) for one in tools]
        return ListToolsResult(tools=listed)

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            return self._failed(f"there is no tool {quote(params.name)} here; this server reads only: {known}", "")
        asker = context.session.client_params
        name = self._client or (asker.client_info.name[:LONGEST_NAME] if asker is not None else "")
        session = getattr(context.request, "headers", {}).get("mcp-session-id", "")
        work = partial(self._answer, f"{session}\n{name}", name, tool, dict(params.arguments or {}))
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _answer(self, session: str, name: str, tool: Tool, arguments: dict[str, object]) -> CallToolResult:
        """One call, in the thread that searches."""
        lists = self._lists[session] = self._lists.pop(session, deque(maxlen=LISTS_PER_CLIENT))
        if len(self._lists) > MOST_CLIENTS:
            self._lists.popitem(last=False)
        try:
            vault = self._now()
            with vault.snapshot():
                value = tool.answer(Caller(name, lists, vault, self._log), tool.checked(arguments))
            text = self._face.text(value)
        except SteelyardError as error:
            return self._failed(str(error), tool.name)
        except Exception:  # a fault of ours ends one call, and says nothing of the machine to the client
            _log.exception("a call of %s failed; please report it", tool.name)
            return self._failed("this is a fault of the server, which has logged it", tool.name)
        structured = {"structured_content": value} if self._face.structured else {}
        return CallToolResult(content=[TextContent(type="text", text=text)], **structured)

    def _failed(self, message: str, tool: str) -> CallToolResult:
        text = self._face.text(self._face.fault(message, tool))
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    def _now(self) -> OpenVault:
        """The vault as the files are now; what cannot be opened is refused, and what was served before stays."""
        state = self._served.state
        if state != self._looked or self._vault.outdated():
            self._looked = state
            try:
                old, self._vault = self._vault, self._served.opened()
                old.close()
            except SteelyardError as error:
                _log.warning("what was served before stays: %s", error)
        return self._vault


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
    while line := await anyio.to_thread.run_sync(pipe.readline, MAX_MESSAGE_BYTES, abandon_on_cancel=True):
        yield readable(line)


def readable(line: bytes) -> str:
    """A message as the SDK reads it. It leaves one that it cannot read without an answer, and who asked waits.

    Half a surrogate pair becomes a question mark. Of what is no JSON, or nested too deep, a request for nothing
    is made with its id, so that it is refused.
    """
    text = line.decode("utf-8", "replace")
    try:
        from_json(text)
    except ValueError:
        try:
            text = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
            from_json(text)
        except (ValueError, RecursionError):
            match = _ID.search(text, 0, 2**12)  # near its beginning
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


class PatientProtocol(H11Protocol):
    """A connection that is closed when it asks nothing for long: silent ones would keep all others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to look."""
        super().connection_made(transport)
        self._look(self)

    def _look(self, asked: object) -> None:
        """Close it where no request came since the last look, and none is still to be answered."""
        if self.cycle is asked and (self.cycle is None or self.cycle.response_complete):
            self.transport.abort()
        elif not self.transport.is_closing():
            self.loop.call_later(REQUEST_SECONDS, self._look, self.cycle)


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
        timeout_graceful_shutdown=5,  # seconds in which what is being answered may end
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        http=PatientProtocol,
        ws="none",
    )
    try:
        await uvicorn.Server(settings).serve()
    except SystemExit:
        raise MachineError(f"port {port} of this machine cannot be served on; choose another one") from None
