"""What the embedders of this machine have in common: a text at a time, and weights checked by their SHA-256.

A text gets the same bits whatever stands beside it. Nothing is downloaded; the weights come with the packages of
the extras.
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
from steelyard.embedders.embed import Kind, Vectors, unit

Encode = Callable[[str], NDArray[np.float32]]
"""A text to float32[dimensions], of any length."""


class LocalEmbedder(ABC):
    """The model is loaded when it is first needed."""

    model: str
    dimensions: int
    identity: str
    """What has to be equal for vectors to be the same."""
    recipe: str | None = None

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; blank texts are zeros. Raises MachineError when the extra is not installed."""
        result = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for i, text in enumerate(texts):
            if text.strip():
                result[i] = self._encode(text)
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


def verified(path: Path, digest: str, requirement: str) -> bytes:
    """A file of the package `requirement`; MachineError unless it is the very file this was measured with."""
    try:
        held = path.read_bytes()
    except OSError as error:
        held = b""
        reason = error.strerror or str(error)
    else:
        reason = "its SHA-256 is another one"
    if sha256(held).hexdigest() != digest:
        raise MachineError(
            f"the file {path.name} of {requirement.partition('==')[0]} cannot be used: {reason}; "
            f"run pip install --force-reinstall {requirement}"
        )
    return held
