"""Embedders: LSA and recorded vectors are here, models of this machine and of providers in an extension.

`kinds` says which embedders there are and how a vault remembers one; `cache` keeps vectors that were paid for.
"""

from __future__ import annotations

from steelyard.embedders.kinds import KINDS, CachedEmbedder, installed, open_embedder, resumable

__all__ = ["KINDS", "CachedEmbedder", "installed", "open_embedder", "resumable"]
