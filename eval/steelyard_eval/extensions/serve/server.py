"""The server: a face over a memory, by the official SDK, over standard input and output or over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as Listed

from steelyard import __version__
from steelyard.base.errors import SteelyardError, shown
from steelyard_eval.extensions.serve.caller import Caller, ServerLog
from steelyard_eval.extensions.serve.memory import Memory
from steelyard_eval.extensions.serve.recent import Recent
from steelyard_eval.extensions.serve.stdio import streams
from steelyard_eval.extensions.serve.tools import Face, Tool
from steelyard_eval.vaults.read import OpenVault

MOST_CLIENTS = 256
"""Clients whose lists are remembered; the one that was silent longest is forgotten first."""
LONGEST_NAME = 200
_log = logging.getLogger(__name__)
Context = ServerRequestContext[object, object]


class MemoryServer:
    """A face over a memory, with a log of searches and acts where there is one.

    `client` is what the log calls whoever asks; by default the name that the client gives itself.
    """

    def __init__(self, memory: Memory, face: Face, log: ServerLog | None = None, client: str = "") -> None:
        self._memory, self._face, self._log, self._client = memory, face, log, client
        self._tools = {tool.name: tool for tool in face.tools if log is not None or not tool.logs}
        self._shown: OrderedDict[str, Recent] = OrderedDict()
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix="steelyard-renewing")
        self._renewing = asyncio.Lock()
        self.protocol = Server("steelyard", version=__version__, on_list_tools=self._list, on_call_tool=self._call)
        self.protocol.middleware.clear()  # the SDK's tracing: nothing is measured by anybody but us

    async def over_stdio(self) -> None:
        """Serve one client until it closes our standard input."""
        async with streams() as (incoming, outgoing):
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
            return self._failed(f"there is no tool {shown(params.name)} here; this server reads only: {known}", "")
        if self._memory.changed():
            await self._renew()
        now = self._memory.now
        work = partial(self._answer, self._caller(context, now.vault), tool, dict(params.arguments or {}))
        return await asyncio.get_running_loop().run_in_executor(now.pool, work)

    def _answer(self, caller: Caller, tool: Tool, arguments: dict[str, object]) -> CallToolResult:
        """One call, in a thread that searches."""
        try:
            given = tool.checked(arguments)
            value = tool.answer(caller, given)
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
