"""Steelyard's engine: hybrid search over an agent's memory, with one table and one code path.

``candidates(query) -> SignalTable``, ``fuse(table, strategy) -> scores``, ``finish(...) -> ranking``;
live search is a table with one query, a recording is a table with thousands. Start reading with
`steelyard.table`. Each name is imported when it is first asked for, so that a command loads what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.base.errors import SteelyardError as SteelyardError
    from steelyard.config import SearchConfig as SearchConfig
    from steelyard.embedders.embed import Embedder as Embedder
    from steelyard.embedders.embed import RecordedEmbedder as RecordedEmbedder
    from steelyard.embedders.lsa import LsaEmbedder as LsaEmbedder
    from steelyard.fusion import fuse as fuse
    from steelyard.fusion import parse_strategy as parse_strategy
    from steelyard.fusion.plan import Explanation as Explanation
    from steelyard.live.search import Searcher as Searcher
    from steelyard.memory.entry import Entry as Entry
    from steelyard.memory.entry import Hit as Hit
    from steelyard.memory.query import Filters as Filters
    from steelyard.memory.query import Query as Query
    from steelyard.results import SearchResult as SearchResult
    from steelyard.stores.sqlite import Vault as Vault
    from steelyard.systems import find_system as find_system
    from steelyard.table.signal_table import SignalTable as SignalTable

__version__ = "0.1.0"

_MODULES = {
    "Embedder": "embedders.embed",
    "Entry": "memory.entry",
    "Explanation": "fusion.plan",
    "Filters": "memory.query",
    "Hit": "memory.entry",
    "LsaEmbedder": "embedders.lsa",
    "Query": "memory.query",
    "RecordedEmbedder": "embedders.embed",
    "SearchConfig": "config",
    "SearchResult": "results",
    "Searcher": "live.search",
    "SignalTable": "table.signal_table",
    "SteelyardError": "base.errors",
    "Vault": "stores.sqlite",
    "find_system": "systems",
    "fuse": "fusion",
    "parse_strategy": "fusion",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
