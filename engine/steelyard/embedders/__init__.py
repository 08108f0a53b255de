"""Embedders that need an extra: providers over HTTP, all-MiniLM-L6-v2 and WordLlama on this machine, and a cache.

Nothing is imported from an extra before it is used; what is missing is named with the command that
installs it. `kinds` says which embedders there are and how a vault remembers one.
"""

from __future__ import annotations

from steelyard.embedders.api import ApiEmbedder
from steelyard.embedders.cache import CachedEmbedder, resumable
from steelyard.embedders.kinds import KINDS, installed, open_embedder
from steelyard.embedders.minilm import MiniLmEmbedder, MiniLmInt8Embedder
from steelyard.embedders.settings import ApiSettings, detect
from steelyard.embedders.wordllama import WordLlamaEmbedder
from steelyard.net.secret import Secret

__all__ = [
    "KINDS",
    "ApiEmbedder",
    "ApiSettings",
    "CachedEmbedder",
    "MiniLmEmbedder",
    "MiniLmInt8Embedder",
    "Secret",
    "WordLlamaEmbedder",
    "detect",
    "installed",
    "open_embedder",
    "resumable",
]
