"""Steelyard's engine: hybrid search over an agent's memory, with one table and one code path.

``candidates(query) -> SignalTable``, ``fuse(table, strategy) -> scores``, ``finish(...) -> ranking``;
live search is a table with one query, a recording is a table with thousands. Start reading with
`steelyard.table`.
"""

from __future__ import annotations

from steelyard.config import SearchConfig
from steelyard.embed import Embedder, RecordedEmbedder
from steelyard.entry import Entry, Hit
from steelyard.errors import SteelyardError
from steelyard.explain import Explanation
from steelyard.filters import Filters
from steelyard.fusion import fuse, parse_strategy
from steelyard.lsa import LsaEmbedder
from steelyard.query import Query
from steelyard.results import SearchResult
from steelyard.search import Searcher
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.table import SignalTable

__version__ = "0.1.0"

__all__ = [
    "Embedder",
    "Entry",
    "Explanation",
    "Filters",
    "Hit",
    "LsaEmbedder",
    "Query",
    "RecordedEmbedder",
    "SearchConfig",
    "SearchResult",
    "Searcher",
    "SignalTable",
    "SteelyardError",
    "Vault",
    "__version__",
    "find_system",
    "fuse",
    "parse_strategy",
]
