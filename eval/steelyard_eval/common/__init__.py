"""What every job shares: the base class of results, progress bars, text that fits a terminal or a page."""

from typing import Any

from steelyard.base.extensions import Table
from steelyard.base.extensions import extension as find

SYSTEMS = ("fts", "bm25", "vector", "echovault", "soleri", "moltnet")
"""What is compared where nothing else is said: the baselines, and the systems that every corpus can feed.

system-spec-kit needs relations and Cortex-Mem abstracts, so they are compared where they are named.
"""

EXTENSIONS: Table = {
    "endpoints": ("steelyard_eval.extensions.endpoints", "a contender at an http: or mcp: address"),
    "importers": ("steelyard_eval.extensions.importers", "reading the store of another program"),
    "model_judge": ("steelyard_eval.extensions.model_judge", "a language model as a judge"),
    "serve": ("steelyard_eval.extensions.serve", "a vault as an MCP server"),
    "usage": ("steelyard_eval.extensions.usage", "reading what other programs keep of their use"),
}
"""Parts of the workbench that its core works without; `steelyard.base.extensions` finds them."""


def extension(name: str) -> Any:  # noqa: ANN401 -- a module, which the core knows by its functions alone
    """The module of an extension; MachineError, with what to do, where it is not installed."""
    return find(name, EXTENSIONS)
