"""Embedders: LSA and recorded vectors are here, models of this machine and of providers in an extension.

`kinds` says which embedders there are and how a vault remembers one; `cache` keeps vectors that were paid for.
"""

from __future__ import annotations

from steelyard.embedders.cache import CachedEmbedder, resumable
from steelyard.embedders.kinds import KINDS, installed, open_embedder

__all__ = ["KINDS", "CachedEmbedder", "installed", "open_embedder", "resumable"]
