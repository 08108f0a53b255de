"""Starts a server, prints its address, and closes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from steelyard_eval.vaults.serve.caller import ServerLog
from steelyard_eval.vaults.serve.http import HOST, PATH, over_http, token_of
from steelyard_eval.vaults.serve.memory import Memory, Served
from steelyard_eval.vaults.serve.server import MemoryServer
from steelyard_eval.vaults.serve.tools import Face


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
