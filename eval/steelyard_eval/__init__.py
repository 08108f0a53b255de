"""Steelyard's workbench: compare strategies, tune weights, explain rankings, report.

    import steelyard_eval as sy

    data = sy.load("mine")
    data.compare("bm25, echovault, rrf(bm25, vector)", current="prod.run").plot()
    data.tune("rrf(bm25, vector)").save_weights("search-weights.json")

Each name is imported when it is first asked for, so that this import and the command line stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from steelyard.base.errors import (
    ConfigError,
    DataError,
    DimensionMismatchError,
    EmbedderError,
    MachineError,
    RerankError,
    RetrieverError,
    SteelyardError,
    VaultError,
)
from steelyard_eval.common import SYSTEMS, extension

if TYPE_CHECKING:
    from steelyard_eval.candidates.fusion_tuner import FusionTuner
    from steelyard_eval.extensions.endpoints.http_search import HttpSearch
    from steelyard_eval.extensions.endpoints.mcp_search import McpSearch
    from steelyard_eval.workbench import Workbench, demo, load
    from steelyard_eval.workbench.retriever import as_retriever
    from steelyard_eval.workbench.transformer import as_transformer

_MODULES = {
    "FusionTuner": "candidates.fusion_tuner",
    "Workbench": "workbench",
    "as_retriever": "workbench.retriever",
    "as_transformer": "workbench.transformer",
    "demo": "workbench",
    "load": "workbench",
}

__all__ = [
    "SYSTEMS",
    "ConfigError",
    "DataError",
    "DimensionMismatchError",
    "EmbedderError",
    "FusionTuner",
    "HttpSearch",
    "MachineError",
    "McpSearch",
    "RerankError",
    "RetrieverError",
    "SteelyardError",
    "VaultError",
    "Workbench",
    "as_retriever",
    "as_transformer",
    "demo",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES[name]}") if name in _MODULES else extension("endpoints")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
