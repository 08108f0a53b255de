"""Speaks to an MCP server over its standard input and output: JSON-RPC 2.0, a message a line.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports. The official SDK is not used,
because its reader bounds neither the length of a line nor the size of a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steelyard.base.errors import DataError, MachineError
from steelyard_eval.extensions.endpoints.answer_form import json_of
from steelyard_eval.extensions.endpoints.child import Child, ChildError

PROTOCOL = "2025-06-18"
"""The version that we speak; servers answer with the one that they do."""
PAGES = 50
"""Pages of the list of tools that are read."""
REFUSED = {"code": -32601, "message": "this client answers nothing but ping"}


class McpClient:
    """A conversation with a server that is running.

    DataError for a refusal and for what is no message, MachineError for no answer: each names the `place`, and
    what the server said as `told` shows it.
    """

    def __init__(self, child: Child, place: str, told: Callable[..., str]) -> None:
        self._child, self._place, self._told = child, place, told
        self._number = 0

    def greet(self, until: float) -> None:
        """Begin the conversation."""
        client = {"name": "steelyard", "version": "1"}
        self.call("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}, until)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

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
        self._child.allow()
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self._message(until, about)
            if "method" in message and "id" in message:
                reply = {"result": {}} if message["method"] == "ping" else {"error": REFUSED}
                self._send({"jsonrpc": "2.0", "id": message["id"], **reply})
            elif "method" not in message and message.get("id") == self._number:
                break
        if "error" in message:
            raise DataError(f"{self._place}{about}: refuses {method}: {self._told(message['error'])}")
        return message.get("result")

    def _message(self, until: float, about: str) -> dict[str, Any]:
        """The next message; other lines, which some servers print by mistake, are passed over."""
        while True:
            try:
                line = self._child.line(until)
            except ChildError as error:
                said = f" ({self._told(error.said, 200)})" if error.said else ""
                raise MachineError(
                    f"{self._place}{about} {error}{said}; start its server by hand to see why"
                ) from None
            if line.lstrip().startswith(b"{"):
                text = line.decode("utf-8", "replace")
                message = json_of(text)
                if not isinstance(message, dict):
                    what = f"answered with {self._told(text)}, which is no message or has too many parts"
                    raise DataError(f"{self._place}{about}: {what}")
                return message

    def _send(self, message: Mapping[str, Any]) -> None:
        self._child.send(json.dumps(message).encode())
