"""The server: a face over a memory that is opened again when its files change, by the official SDK."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as Listed

from steelyard import __version__
from steelyard.base.errors import SteelyardError, shown
from steelyard_eval.extensions.serve.caller import MOST, Caller, ServerLog, ShownList
from steelyard_eval.extensions.serve.tools import Face, Tool
from steelyard_eval.vaults.read import OpenVault, RankedBy

MOST_CLIENTS = 256
"""Clients whose lists are remembered; the one that was silent longest is forgotten first."""
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
        vault = OpenVault(self.vault, self.scopes, RankedBy.of(self.by), explored, self.hnsw)
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
        self._served, self._face, self._log, self._client = served, face, log, client
        self._tools = {tool.name: tool for tool in face.tools if log is not None or not tool.logs}
        self._lists: OrderedDict[str, deque[ShownList]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="steelyard-serve")
        self._looked = served.state
        self._vault = self._thread.submit(served.opened).result()
        self.protocol = Server("steelyard", version=__version__, on_list_tools=self._list, on_call_tool=self._call)
        self.protocol.middleware.clear()  # the SDK's tracing: nothing is measured by anybody but us

    def close(self) -> None:
        """Close the memory."""
        self._thread.submit(self._vault.close).result()
        self._thread.shutdown()

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        tools = self._tools.values()
        return ListToolsResult(
            tools=[Listed(name=one.name, description=one.about, input_schema=dict(one.schema)) for one in tools]
        )

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            return self._failed(f"there is no tool {shown(params.name)} here; this server reads only: {known}", "")
        asker = context.session.client_params
        name = self._client or (asker.client_info.name[:LONGEST_NAME] if asker is not None else "")
        session = getattr(context.request, "headers", {}).get("mcp-session-id", "")
        work = partial(self._answer, f"{session}\n{name}", name, tool, dict(params.arguments or {}))
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _answer(self, session: str, name: str, tool: Tool, arguments: dict[str, object]) -> CallToolResult:
        """One call, in the thread that searches."""
        lists = self._lists[session] = self._lists.pop(session, deque(maxlen=MOST))
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
