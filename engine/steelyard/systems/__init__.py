"""The list of systems by ``name:profile``; a name alone means the documented profile.

Parameters of retrievers may follow in brackets: ``spec_kit[graph.hops=1, graph.seeds=3]``.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.base.fields import parse_number
from steelyard.embedders.embed import LAYER_RECIPES
from steelyard.memory.entry import Hit
from steelyard.memory.text import template_fields
from steelyard.node import Option, Registry
from steelyard.retrievers import RETRIEVER_KINDS, SCORER_KINDS
from steelyard.stores.base import KeywordIndex, ReadableStore
from steelyard.stores.postings import WordAnalyzer
from steelyard.systems import cortex_mem, echovault, mem0, moltnet, soleri, spec_kit
from steelyard.systems.base import System, generations, shown_fields


def _present(hit: Hit) -> dict[str, Any]:
    return shown_fields(hit, "id title text tags project score created_at")


_EVERY = tuple(name for name, kind in RETRIEVER_KINDS.items() if kind.separate_scope is None)
_LISTS, *_BASELINES = generations("baselines", vars(cortex_mem) | globals())

SYSTEMS: Registry[System] = Registry(
    "system",
    "key",
    (
        *_BASELINES,
        *(*echovault.PROFILES, *moltnet.PROFILES, *soleri.PROFILES, *mem0.PROFILES),
        *(*spec_kit.PROFILES, *cortex_mem.PROFILES),
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


def analyses(systems: Iterable[System], store: ReadableStore) -> list[WordAnalyzer]:
    """List what retrievers and scorers count of the words of a store's entries in these systems, each once."""
    by_key: dict[str, WordAnalyzer] = {}
    for system in systems:
        config = system.config()
        for name in config.retrievers.keys() | config.effective.signals:
            kind = RETRIEVER_KINDS.get(name) or SCORER_KINDS.get(name)
            if kind is not None and (analysis := kind.counts(system.reading, store)) is not None:
                by_key[analysis.key] = analysis
    return list(by_key.values())


def find_system(name: str) -> System:
    """Look one system up by name; ConfigError when it is unknown, or has no such parameter."""
    plain, given = plain_name(name)
    key = plain if ":" in plain else f"{plain}:documented"
    system = _LISTS if key == _LISTS.key else SYSTEMS.find(key)
    if system is None:
        near = nearest(plain.partition(":")[0], [known.removesuffix(":documented") for known in SYSTEMS])
        raise ConfigError(f"unknown system {quote(plain)}{near}")
    known = {
        f"{retriever}.{option.name}": (retriever, option)
        for retriever in system.searching.retrievers
        for option in RETRIEVER_KINDS[retriever].parameters
    }
    parameters: dict[str, dict[str, float | str]] = {
        retriever: dict(values) for retriever, values in system.searching.parameters.items()
    }
    for part in given.split(",") if given else ():
        parameter, _, text = map(str.strip, part.partition("="))
        if text and parameter not in known:
            meant = [name for name in known if name.endswith(f".{parameter}")]
            hint = f"; write {meant[0]}" if meant else nearest(parameter, known) if known else "; it has none"
            raise ConfigError(f"{system.name} has no parameter {quote(parameter)}{hint}")
        retriever, option = known.get(parameter, ("", Option("")))
        try:
            value = text if option.kind == "word" else parse_number(text)
        except ValueError:
            raise ConfigError(
                f"{quote(part)} is not RETRIEVER.PARAMETER=NUMBER; write it as graph.hops=1"
            ) from None
        parameters.setdefault(retriever, {})[option.name] = option.checked(value)
    return replace(system, searching=replace(system.searching, parameters=parameters)) if given else system


def plain_name(text: str) -> tuple[str, str]:
    """The name of a system, and the parameters in the brackets behind it; empty without any."""
    match = _WITH_PARAMETERS.fullmatch(text.strip())
    return (match[1].rstrip(), match[2]) if match else (text, "")
