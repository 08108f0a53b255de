"""Reads the configuration to explain, and removes what this data set cannot supply."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.table.signal_table import LAYERS
from steelyard_eval.compare.contenders import Contender, Given, Named, read, usable
from steelyard_eval.recording.workspace import Workspace


def read_config(given: Given, lists: Collection[str] = ()) -> Named:
    """Read a contender that is a configuration; ConfigError for one that consists of lists."""
    found = read(given, lists=lists)
    if isinstance(found, Named):
        return found
    raise ConfigError(
        f"{found.label} has lists only, without signals or weights; name a system, a strategy or a "
        "weights file, and explain it against the lists, or compare both"
    )


def left_of(space: Workspace, config: SearchConfig) -> SearchConfig:
    """Remove the signals that this data set cannot supply; ConfigError when nothing is left."""
    return usable(space, Contender(config.name, config, "system"))[0].config


def reaching(config: SearchConfig, size: int) -> SearchConfig:
    """Make every list as long as the corpus, to find the position of an entry beyond the depth."""
    retrievers = {
        name: settings if name in LAYERS else replace(settings, depth=max(settings.depth or 1, size))
        for name, settings in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)
