"""The kinds of stores that can be imported; to add one, write a module with an `IMPORTER` and list it here.

A package of your own names its importer under the entry point `steelyard.importers`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from steelyard.base.errors import ConfigError, shown
from steelyard_eval.extensions.importers import (
    basic_memory,
    benchmark,
    claude,
    conversations,
    cortex_mem,
    echovault,
    langgraph,
    markdown,
    mcp_memory,
    mem0,
    moltnet,
    soleri,
    spec_kit,
    steelyard,
    table,
)
from steelyard_eval.extensions.importers.base import Importer

OWN: tuple[Importer, ...] = (
    echovault.IMPORTER,
    soleri.IMPORTER,
    spec_kit.IMPORTER,
    moltnet.IMPORTER,
    cortex_mem.IMPORTER,
    claude.IMPORTER,
    basic_memory.IMPORTER,
    mem0.IMPORTER,
    langgraph.IMPORTER,
    mcp_memory.IMPORTER,
    conversations.LOCOMO,
    conversations.LONGMEMEVAL,
    conversations.BEAM,
    benchmark.BEIR,
    benchmark.TREC,
    benchmark.IRDS,
    markdown.IMPORTER,
    table.IMPORTER,
    steelyard.IMPORTER,
)
"""In the order in which a source is tried."""
GROUP = "steelyard.importers"


@cache
def importers() -> dict[str, Importer]:
    """Every kind by name: ours, then those of installed packages."""
    known = {importer.name: importer for importer in OWN}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        importer = point.load()
        if importer.name in known:
            raise ConfigError(f"two importers are named {shown(importer.name)}; uninstall one of the packages")
        known[importer.name] = importer
    return known
