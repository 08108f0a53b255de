"""Steelyard's workbench: compare strategies, tune weights, explain rankings, report.

    import steelyard_eval as sy

    data = sy.load("mine")
    data.compare("bm25, echovault, rrf(bm25, vector)", current="prod.run").plot()
    data.tune("rrf(bm25, vector)").save_weights("search-weights.json")

Each name is imported when it is first asked for, so that this import and the command line stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError as ConfigError
from steelyard.base.errors import DataError as DataError
from steelyard.base.errors import DimensionMismatchError as DimensionMismatchError
from steelyard.base.errors import EmbedderError as EmbedderError
from steelyard.base.errors import MachineError as MachineError
from steelyard.base.errors import RerankError as RerankError
from steelyard.base.errors import RetrieverError as RetrieverError
from steelyard.base.errors import SteelyardError as SteelyardError
from steelyard.base.errors import VaultError as VaultError
from steelyard_eval.common import SYSTEMS as SYSTEMS
from steelyard_eval.common import extension

if TYPE_CHECKING:
    from steelyard_eval.extensions.endpoints.http_search import HttpSearch as HttpSearch
    from steelyard_eval.extensions.endpoints.mcp_search import McpSearch as McpSearch
    from steelyard_eval.workbench import Workbench as Workbench
    from steelyard_eval.workbench import demo as demo
    from steelyard_eval.workbench import load as load
    from steelyard_eval.workbench.retriever import as_retriever as as_retriever
    from steelyard_eval.workbench.transformer import as_transformer as as_transformer

_MODULES = {
    "Workbench": "workbench",
    "as_retriever": "workbench.retriever",
    "as_transformer": "workbench.transformer",
    "demo": "workbench",
    "load": "workbench",
}
_ENDPOINTS = {"HttpSearch", "McpSearch"}


def __getattr__(name: str) -> object:
    if name not in _MODULES and name not in _ENDPOINTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES[name]}") if name in _MODULES else extension("endpoints")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_ENDPOINTS})
