"""The kinds of stores that can be imported; to add one, write a module with an `IMPORTER` and list it here.

A package of your own names its importer under the entry point `steelyard.importers`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from steelyard.base.errors import ConfigError, shown
from steelyard_eval.extensions.importers.base import Importer

MODULES = """
    echovault soleri spec_kit moltnet cortex_mem
    claude basic_memory mem0 langgraph mcp_memory
    conversations benchmark markdown table steelyard
"""
"""In the order in which a source is tried; a module has one `IMPORTER`, or several `IMPORTERS`."""
GROUP = "steelyard.importers"


@cache
def importers() -> dict[str, Importer]:
    """Every kind by name: ours, then those of installed packages."""
    known: dict[str, Importer] = {}
    for name in MODULES.split():
        module = import_module(f"steelyard_eval.extensions.importers.{name}")
        own = getattr(module, "IMPORTERS", None) or [module.IMPORTER]
        known |= {importer.name: importer for importer in own}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        importer = point.load()
        if importer.name in known:
            raise ConfigError(f"two importers are named {shown(importer.name)}; uninstall one of the packages")
        known[importer.name] = importer
    return known
