"""Modules under the names that the documentation showed before they moved into rooms."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "steelyard.arrays": "steelyard.base.arrays",
    "steelyard.entry": "steelyard.memory.entry",
    "steelyard.errors": "steelyard.base.errors",
    "steelyard.fields": "steelyard.base.fields",
    "steelyard.files": "steelyard.base.files",
    "steelyard.query": "steelyard.memory.query",
    "steelyard.reading": "steelyard.retrievers.reading",
    "steelyard.search": "steelyard.live.search",
    "steelyard.systems.cortex_mem.client": "steelyard.live.cortex_mem",
    "steelyard.text": "steelyard.memory.text",
}


class Moved:
    """A finder and its loader, asked after Python's own; the old name and the new one are the same module.

    It has no base class, because `importlib.abc` would double what `import steelyard` loads.
    """

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:  # noqa: ANN401 -- Python's own arguments
        """See MetaPathFinder.find_spec."""
        return ModuleSpec(name, self) if name in MOVED else None  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> None:
        """See Loader.create_module: a module as usual."""

    def exec_module(self, module: ModuleType) -> None:
        """See Loader.exec_module."""
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])
