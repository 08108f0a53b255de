"""The list of systems by ``name:profile``; a name alone means the documented profile.

Parameters of retrievers may follow in brackets: ``spec_kit[graph.hops=1, graph.seeds=3]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.base.fields import parse_number
from steelyard.config import SearchConfig
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.grammar import number_text
from steelyard.memory.text import template_fields
from steelyard.node import Registry
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS
from steelyard.stores.base import KeywordIndex
from steelyard.stores.postings import Analysis
from steelyard.systems import baselines, cortex_mem, echovault, mem0, moltnet, soleri, spec_kit
from steelyard.systems.base import System

SYSTEMS: Registry[System] = Registry(
    "system",
    "key",
    (
        *(baselines.FTS, baselines.BM25, baselines.VECTOR, baselines.PLAIN),
        *(echovault.DOCUMENTED, echovault.SHIPPED, moltnet.DOCUMENTED, moltnet.SHIPPED),
        *(soleri.DOCUMENTED, soleri.SHIPPED, spec_kit.DOCUMENTED, spec_kit.SHIPPED, spec_kit.JS),
        *(cortex_mem.DOCUMENTED, cortex_mem.SHIPPED, mem0.DOCUMENTED),
    ),
)

_WITH_PARAMETERS = re.compile(r"([^\[\]]+)\[([^\[\]]+)\]")

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

__all__ = ["SYSTEMS", "System"]


def keyword_indexes(systems: Iterable[System]) -> list[KeywordIndex]:
    """List the full-text indexes that a store needs for these systems, each once."""
    return list(dict.fromkeys(s.reading.index for s in systems if isinstance(s.reading.index, KeywordIndex)))


def analyses(systems: Iterable[System]) -> list[Analysis]:
    """List what retrievers and scorers count of the words of entries in these systems, each once."""
    by_key: dict[str, Analysis] = {}
    for system in systems:
        config = system.config()
        for name in config.retrievers.keys() | config.effective.signals:
            kind = RETRIEVER_KINDS.get(name) or SCORER_KINDS.get(name)
            if kind is not None and (analysis := kind.counts(system.reading)) is not None:
                by_key[analysis.key] = analysis
    return list(by_key.values())


def find_system(name: str) -> System:
    """Look one system up by name; ConfigError when it is unknown."""
    plain, given = plain_name(name)
    key = plain if ":" in plain else f"{plain}:documented"
    system = baselines.LISTS if key == baselines.LISTS.key else SYSTEMS.find(key)
    if system is None:
        near = nearest(plain.partition(":")[0], [known.removesuffix(":documented") for known in SYSTEMS])
        raise ConfigError(f"unknown system {shown(plain)}{near}")
    numbers = {}
    for part in given.split(",") if given else ():
        parameter, _, value = part.partition("=")
        try:
            numbers[parameter.strip()] = parse_number(value.strip())
        except ValueError:
            raise ConfigError(
                f"{shown(part)} is not RETRIEVER.PARAMETER=NUMBER; write it as graph.hops=1"
            ) from None
    return system.with_parameters(numbers) if numbers else system


def plain_name(text: str) -> tuple[str, str]:
    """The name of a system, and the parameters in the brackets behind it; empty without any.

    >>> plain_name("spec_kit:js[graph.hops=1]")
    ('spec_kit:js', 'graph.hops=1')
    """
    match = _WITH_PARAMETERS.fullmatch(text.strip())
    return (match[1].rstrip(), match[2]) if match else (text, "")


def written_name(config: SearchConfig) -> str:
    """How a command names the system of a configuration, with the parameters that are not the system's own."""
    usual = find_system(config.name).config().retrievers
    changed = [
        f"{name}.{parameter}={number_text(value)}"
        for name, retriever in config.retrievers.items()
        for parameter, value in retriever.parameters.items()
        if name not in usual or value != usual[name].parameters.get(parameter)
    ]
    return config.name.removesuffix(":documented") + (f"[{', '.join(changed)}]" if changed else "")
