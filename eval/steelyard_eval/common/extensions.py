"""Parts that the core works without: each is found by its name, and imported when something first asks for it.

No module of the core imports an extension, so a folder of one can be left out. A package of your own may bring one
that is not here, under the entry point `steelyard.extensions`: the name, and a module with the same functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steelyard.base.errors import MachineError

EXTENSIONS = {
    "endpoints": ("steelyard_eval.extensions.endpoints", "a contender at an http: or mcp: address"),
    "importers": ("steelyard_eval.extensions.importers", "reading the store of another program"),
    "model_judge": ("steelyard_eval.extensions.model_judge", "a language model as a judge"),
    "serve": ("steelyard_eval.extensions.serve", "a vault as an MCP server"),
    "usage": ("steelyard_eval.extensions.usage", "reading what other programs keep of their use"),
}
"""Name -> its module, and what it is for."""
GROUP = "steelyard.extensions"


def extension(name: str) -> Any:  # noqa: ANN401 -- a module, which the core knows by its functions alone
    """The module of an extension; MachineError, with what to do, where it is not installed."""
    module, what = EXTENSIONS[name]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        lacking = _extension_of(error.name or "")
        if not lacking:  # a library that it needs, whose own error tells more
            raise
    from importlib.metadata import entry_points  # it loads the package email

    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise MachineError(
        f"{what} needs the extension {lacking}, which is not installed here; install all of Steelyard again"
    )


def _extension_of(module: str) -> str:
    """The extension that a module belongs to; empty for any other module."""
    return next((name for name, (own, _) in EXTENSIONS.items() if f"{module}.".startswith(f"{own}.")), "")
