"""WordLlama's l2_supercat on this machine: a vector for each token, and the mean of them; no network of layers.

The package carries the weights and the tokenizer, but looks for its tokenizer in another folder and then asks the
network for it, and sets up logging as it is imported. So its two files are read, and it is never imported.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.extensions import require
from steelyard.extensions.models.local import Encode, LocalEmbedder, verified

PACKAGE = "wordllama==0.4.0.post1"
WEIGHTS = (
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = (
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


class WordLlamaEmbedder(LocalEmbedder):
    """Static vectors of 256 numbers, 16 MB, made from Llama 2's token embeddings (MIT; extra `wordllama`).

    Texts are read to their end. Sums are of float64 and without BLAS, so the bits are the same on every machine.
    Source: WordLlamaInference.embed of the package, whose vectors these are.
    """

    model = "wordllama"
    dimensions = 256
    identity = "wordllama l2_supercat 256"

    def _load(self) -> Encode:
        require("wordllama", f"the embedder {self.model}")
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        weights, tokens = (_file(*file) for file in (WEIGHTS, TOKENIZER))
        vectors: NDArray[np.float16] = load(weights)["embedding.weight"]
        tokenizer = Tokenizer.from_str(tokens.decode("utf-8"))

        def encode(text: str) -> NDArray[np.float32]:
            ids, counts = np.unique(tokenizer.encode(text, add_special_tokens=False).ids, return_counts=True)
            total = (vectors[ids].astype(np.float64) * counts[:, None]).sum(axis=0)
            mean: NDArray[np.float32] = (total / counts.sum()).astype(np.float32)
            return mean

        return encode


def _file(name: str, digest: str) -> bytes:
    """A file of the installed package, which is found and not imported."""
    spec = find_spec("wordllama")
    folders = (spec and spec.submodule_search_locations) or [""]
    return verified(Path(folders[0], name), digest, PACKAGE)
