"""The systems that are compared when none are named."""

from __future__ import annotations

SYSTEMS = ("fts", "bm25", "vector", "echovault", "soleri", "moltnet")
"""What is compared where nothing else is said: the baselines, and the systems that every corpus can feed.

system-spec-kit needs relations and Cortex-Mem abstracts, so they are compared where they are named.
"""
