"""The faces that a server can have: a face is the set of tools by which clients of one memory system search."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard_eval.extensions.serve import cortex_mem, echovault, moltnet, soleri, spec_kit, steelyard_tools
from steelyard_eval.extensions.serve.tools import Face

AGENT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""A name of an agent, which tools may begin with."""
MIMICS: Mapping[str, Callable[[str], Face]] = {
    "echovault": lambda _: echovault.FACE,
    "cortex_mem": lambda _: cortex_mem.FACE,
    "soleri": lambda agent: soleri.face(agent or "soleri"),
    "moltnet": lambda _: moltnet.FACE,
    "spec_kit": lambda _: spec_kit.FACE,
}
"""The memory systems whose place a server can take; Soleri's tools have the name of an agent: `soleri:NAME`."""


def find_face(text: str | None) -> Face:
    """Our own face, or that of a system; ConfigError for one that there is not."""
    if text is None:
        return steelyard_tools.FACE
    name, colon, agent = text.partition(":")
    if name not in MIMICS or (colon and (name != "soleri" or not AGENT.fullmatch(agent))):
        raise ConfigError(f"there is no face {shown(text)}{nearest(name, MIMICS)}; an agent is for soleri:AGENT")
    return MIMICS[name](agent)
