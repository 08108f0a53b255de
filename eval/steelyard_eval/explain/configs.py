"""Which configuration is explained, and what is left of it on this data set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.table import LAYERS
from steelyard_eval.compare.contenders import Contender, Given, Named, read, usable
from steelyard_eval.recording.workspace import Workspace


def read_config(given: Given, lists: Collection[str] = ()) -> Named:
    """A contender that is a configuration. Raises ConfigError for one that is lists alone."""
    found = read(given, lists=lists)
    if isinstance(found, Named):
        return found
    raise ConfigError(
        f"{found.label} is known by its lists alone, without signals or weights; name a system, a strategy or a "
        "weights file, and explain it against the lists, or compare both"
    )


def left_of(space: Workspace, config: SearchConfig) -> SearchConfig:
    """What is left of the strategy without the signals this data set cannot feed; ConfigError when nothing is."""
    return usable(space, Contender(config.name, config, "system"))[0].config


def reaching(config: SearchConfig, size: int) -> SearchConfig:
    """The configuration with every list as long as the corpus, to say where an entry stands beyond its depth."""
    retrievers = {
        name: settings if name in LAYERS else replace(settings, depth=max(settings.depth or 1, size))
        for name, settings in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)
