"""A vault as a memory server: tools of the Model Context Protocol, with a log of what was shown and used."""

from __future__ import annotations

import time
from collections.abc import Callable

from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.faces import find_face
from steelyard_eval.extensions.serve.memory import Served

__all__ = ["serve"]


def serve(
    vault: str,
    by: str,
    log: str | None,
    mimic: str | None,
    scopes: tuple[str, ...],
    hnsw: int | None,
    explore: str | None,
    share: float,
    client: str,
    port: int | None,
    told: Callable[[str, str, bool], None],
) -> None:
    """Serve a vault, until its client leaves or somebody ends it; the options are those of `steelyard serve`.

    `told` gets the address, the token, and whether the token is new, when a port is open.
    """
    from steelyard_eval.extensions.serve.http import run  # the extra

    face = find_face(mimic)
    served = Served(vault, scopes, by or face.system, share, explore, hnsw)
    run(served, face, None if log is None else ServerLog(log, time.time), client, port, told)
