"""The two search calls that Cortex-Mem's document names, and what its language model writes."""

from __future__ import annotations

from steelyard.extensions.cortex_client.client import CortexMem, MemoryHit, SearchOptions
from steelyard.extensions.cortex_client.layers import extract, with_layers
from steelyard.extensions.cortex_client.rewriting import Rewriter
from steelyard.extensions.cortex_client.summaries import ask
from steelyard.extensions.cortex_client.uris import check_uri, id_of, uri_of, vault_of

__all__ = [
    "CortexMem",
    "MemoryHit",
    "Rewriter",
    "SearchOptions",
    "ask",
    "check_uri",
    "extract",
    "id_of",
    "uri_of",
    "vault_of",
    "with_layers",
]
