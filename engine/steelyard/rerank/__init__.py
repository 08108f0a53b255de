"""Re-ranking: a cross-encoder reads query and document together and scores the first places of a list again.

`base` is the protocol, `api` asks Voyage or Cohere, `local` runs a model on this machine, `cache` and `guard`
wrap any of them, `settings` finds the one that the environment asks for.
"""

from steelyard.rerank.base import CrossEncoder, Document
from steelyard.rerank.cache import CachedReranker
from steelyard.rerank.guard import GuardedReranker

__all__ = ["CachedReranker", "CrossEncoder", "Document", "GuardedReranker"]
