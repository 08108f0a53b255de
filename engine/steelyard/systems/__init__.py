"""The list of systems by ``name:profile``; a name alone means the documented profile."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.memory.template import template_fields
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS
from steelyard.stores.base import KeywordIndex
from steelyard.stores.postings import Analysis
from steelyard.systems import baselines, cortex_mem, echovault, moltnet, soleri, spec_kit
from steelyard.systems.base import System

SYSTEMS: dict[str, System] = {
    f"{system.name}:{system.profile}": system
    for system in (
        baselines.FTS,
        baselines.BM25,
        baselines.VECTOR,
        baselines.PLAIN,
        echovault.DOCUMENTED,
        echovault.SHIPPED,
        moltnet.DOCUMENTED,
        moltnet.SHIPPED,
        soleri.DOCUMENTED,
        soleri.SHIPPED,
        spec_kit.DOCUMENTED,
        spec_kit.SHIPPED,
        spec_kit.JS,
        cortex_mem.DOCUMENTED,
        cortex_mem.SHIPPED,
    )
}

EMBEDDED = "\n".join(
    f"{{{name}}}"
    for name in dict.fromkeys(
        "tags" if field == "tag" else field
        for recipe in (*(system.reading.recipe for system in SYSTEMS.values()), *LAYER_RECIPES.values())
        for field in template_fields(recipe)
    )
)
"""A template of every field that any system or layer embeds, each once, on which LSA is fitted.

One fit serves every recipe: it has counted the words of all of them, and a query has one vector.
"""

__all__ = ["EMBEDDED", "SYSTEMS", "System", "analyses", "find_system", "find_systems", "keyword_indexes"]


def keyword_indexes(systems: Iterable[System]) -> list[KeywordIndex]:
    """List the full-text indexes that a store needs for these systems, each once."""
    return list(dict.fromkeys(s.reading.index for s in systems if isinstance(s.reading.index, KeywordIndex)))


def analyses(systems: Iterable[System]) -> list[Analysis]:
    """List what retrievers and scorers count of the words of entries in these systems, each once."""
    found: dict[str, Analysis] = {}
    for system in systems:
        config = system.config()
        used = config.retrievers.keys() | config.effective.signals()
        kinds = {name: kind.counts for name, kind in RETRIEVER_KINDS.items()}
        kinds |= {name: kind.counts for name, kind in SCORER_KINDS.items()}
        for name in used & kinds.keys():
            if (own := kinds[name](system.reading)) is not None:
                found[own.key] = own
    return list(found.values())


def find_systems(names: list[str]) -> list[System]:
    """Look systems up by name; ConfigError lists every unknown name at once."""
    known = {**SYSTEMS, f"{baselines.LISTS.name}:{baselines.LISTS.profile}": baselines.LISTS}
    valid = {name.removesuffix(":documented"): system for name, system in known.items()} | known
    short = [name.removesuffix(":documented") for name in SYSTEMS]
    unknown = [name for name in names if name not in valid]
    problems = [f"unknown system {shown(name)}{nearest(name.partition(':')[0], short)}" for name in unknown]
    if problems:
        raise ConfigError("; ".join(problems))
    return [valid[name] for name in names]


def find_system(name: str) -> System:
    """Look one system up by name; ConfigError when it is unknown."""
    return find_systems([name])[0]
