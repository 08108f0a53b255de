"""The two search calls that Cortex-Mem's document names, and what its language model writes."""

from __future__ import annotations

from steelyard.extensions.cortex_client.client import CortexMem, MemoryHit, SearchOptions
from steelyard.extensions.cortex_client.layers import extract, with_layers
from steelyard.extensions.cortex_client.rewriting import Rewriter
from steelyard.extensions.cortex_client.summaries import ask

__all__ = ["CortexMem", "MemoryHit", "Rewriter", "SearchOptions", "ask", "extract", "with_layers"]
