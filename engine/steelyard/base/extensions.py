"""Parts that the core works without: each is found by its name, and imported when something first asks for it.

No module of the core imports an extension, so a folder of one can be left out. A package of your own may bring one
that is not here, under the entry point `steelyard.extensions`: the name, and a module with the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from steelyard.base.errors import MachineError

Table = Mapping[str, tuple[str, str]]
"""Name -> its module, and what it is for."""
EXTENSIONS: Table = {
    "adaptive": ("steelyard.extensions.adaptive", "the rule by which Soleri's weights follow feedback"),
    "cortex_client": ("steelyard.extensions.cortex_client", "Cortex-Mem's two calls, and its language model"),
    "int8": ("steelyard.extensions.int8", "keeping vectors in 8 bits a number"),
    "models": ("steelyard.extensions.models", "an embedding model"),
    "network": ("steelyard.extensions.network", "asking an address"),
    "postgres": ("steelyard.extensions.postgres", "a vault in PostgreSQL"),
    "spec_kit_file": ("steelyard.extensions.spec_kit_file", "system-spec-kit's own file of weights"),
    "rerank": ("steelyard.extensions.rerank", "a re-ranker"),
    "secrets": ("steelyard.extensions.secrets", "keeping what queries say"),
}
GROUP = "steelyard.extensions"


def extension(name: str, table: Table = EXTENSIONS) -> Any:  # noqa: ANN401 -- a module, known by its functions alone
    """The module of an extension; MachineError, with what to do, where it is not installed."""
    module, what = table[name]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        lacking = _extension_of(error.name or "", {**EXTENSIONS, **table})
        if not lacking:  # a library that it needs, whose own error tells more
            raise
    from importlib.metadata import entry_points  # it loads the package email

    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise MachineError(
        f"{what} needs the extension {lacking}, which is not installed here; install all of Steelyard again"
    )


def _extension_of(module: str, table: Table) -> str:
    """The extension that a module belongs to; empty for any other module."""
    return next((name for name, (own, _) in table.items() if f"{module}.".startswith(f"{own}.")), "")
