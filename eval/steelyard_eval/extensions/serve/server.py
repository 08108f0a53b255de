"""The server: tools over a memory, by the official SDK, for the agent that started it, over its pipes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as Listed

from steelyard import __version__
from steelyard.base.errors import SteelyardError, shown
from steelyard_eval.extensions.serve.caller import Caller, Recent, ServerLog, Tool, tools
from steelyard_eval.vaults.read import OpenVault, RankedBy

LONGEST_NAME = 200
_log = logging.getLogger(__name__)
Context = ServerRequestContext[object, object]


@dataclass(frozen=True)
class Served:
    """What the command line names: the vault, its scopes, how it is searched, and what is interleaved.

    `share` is that of the searches, `against` the other ranking, drawn weights without one; `hnsw` is as in
    `open_vault`.
    """

    vault: str
    scopes: Sequence[str] = ()
    by: str = "echovault"
    share: float = 0.0
    against: str | None = None
    hnsw: int | None = None

    def opened(self) -> OpenVault:
        """Open all of it; SteelyardError where a file is not what it should be."""
        other = None if self.against is None else RankedBy.of(self.against)
        explored = (self.share, other) if self.share else None
        return OpenVault(self.vault, self.scopes, RankedBy.of(self.by), explored, self.hnsw)

    @property
    def state(self) -> list[tuple[int, int, int]]:
        """What changes when somebody writes one of the files."""
        files = (self.vault, f"{self.vault}-wal", self.by, self.against)  # a system is no file, and never changes
        there = (Path(name).stat() for name in files if name is not None and Path(name).exists())
        return [(status.st_mtime_ns, status.st_size, status.st_ino) for status in there]


class Memory:
    """What is served now: a vault and weights that are opened again when their files change, all in one thread.

    What cannot be opened is refused with a warning, and what was served before stays.
    """

    def __init__(self, served: Served) -> None:
        self._served, self._looked = served, served.state
        self._vault = self._opened()

    def now(self) -> OpenVault:
        """The vault as the files are now."""
        state = self._served.state
        if state != self._looked or self._vault.outdated():
            self._looked = state
            try:
                new = self._opened()
            except SteelyardError as error:
                _log.warning("what was served before stays: %s", error)
            else:
                self.close()
                self._vault = new
        return self._vault

    def _opened(self) -> OpenVault:
        vault = self._served.opened()
        with vault.snapshot():  # connected now: later the file at the path may be another one, or none
            return vault

    def close(self) -> None:
        """Close what is served."""
        self._vault.close()


class MemoryServer:
    """The tools over a memory, with a log of searches and acts where there is one.

    `client` is what the log calls whoever asks; by default the name that the client gives itself.
    """

    def __init__(self, served: Served, log: ServerLog | None = None, client: str = "") -> None:
        self._log, self._client = log, client
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="steelyard-serve")
        self._memory = self._thread.submit(Memory, served).result()
        self._tools = {name: tool for name, tool in tools().items() if log is not None or not tool.logs}
        self._recent = Recent()
        self.protocol = Server("steelyard", version=__version__, on_list_tools=self._list, on_call_tool=self._call)
        self.protocol.middleware.clear()  # the SDK's tracing: nothing is measured by anybody but us

    async def over_stdio(self) -> None:
        """Serve one client until it closes our standard input."""
        async with stdio_server() as (incoming, outgoing):
            await self.protocol.run(incoming, outgoing, self.protocol.create_initialization_options())

    def close(self) -> None:
        """Close the memory."""
        self._thread.submit(self._memory.close).result()
        self._thread.shutdown()

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
        asker = context.session.client_params
        name = self._client or (asker.client_info.name[:LONGEST_NAME] if asker is not None else "")
        work = partial(self._answer, name, tool, dict(params.arguments or {}))
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _answer(self, name: str, tool: Tool, arguments: dict[str, object]) -> CallToolResult:
        try:
            caller = Caller(name, self._recent, self._memory.now(), self._log)
            text = json.dumps(tool.answer(caller, tool.checked(arguments)), ensure_ascii=False, allow_nan=False)
        except SteelyardError as error:
            return _failed(str(error))
        except Exception:  # a fault of ours ends one call, and says nothing of the machine to the client
            _log.exception("a call of %s failed; please report it", tool.name)
            return _failed("this is a fault of the server, which has logged it")
        return CallToolResult(content=[TextContent(type="text", text=text)])


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def run(served: Served, log: ServerLog | None, client: str) -> None:
    """Serve one client over standard input and output, to the end; SteelyardError where there is no memory."""
    server = MemoryServer(served, log, client)
    try:
        asyncio.run(server.over_stdio())
    finally:
        server.close()
