"""Which configuration is meant by a word, and what is left of it on this data set."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError, nearest, shown
from steelyard.fusion import parse_strategy
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS, find_system
from steelyard.table import FETCHED, LAYERS
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.recording.workspace import Workspace

LIMIT = 10
"""How long the lists are, unless a limit or a weights file says otherwise: the cutoff of the metrics."""


@dataclass(frozen=True, slots=True)
class Named:
    """A configuration by its words: `kind` is system, strategy (over the system `plain`) or weights (a file)."""

    kind: str
    text: str

    def config(self, limit: int | None, model: str) -> SearchConfig:
        """The configuration at a limit; a weights file keeps its own when none is given. ConfigError."""
        if self.kind == "weights":
            return cut_at(SearchConfig.load(self.text), limit)
        if self.kind == "system":
            return find_system(self.text).config(limit or LIMIT, model, os.environ)
        return find_system("plain").config(limit or LIMIT, model).with_strategy(parse_strategy(self.text))


def read_name(text: str) -> Named:
    """What a text names; a system of that name comes before a signal. Raises ConfigError.

    >>> read_name("echovault").kind, read_name("rrf(fts, vector)").kind, read_name("w.json").kind
    ('system', 'strategy', 'weights')
    """
    systems = {name.removesuffix(":documented") for name in SYSTEMS} | SYSTEMS.keys()
    if text in systems:
        return Named("system", text)
    if text.endswith(".json"):
        return Named("weights", text)
    if "(" in text or text in FETCHED | PRIORS.keys():
        return Named("strategy", text)
    if Path(text).is_file():
        return Named("weights", text)
    raise ConfigError(
        f"{shown(text)} is no system, strategy or weights file{nearest(text.partition(':')[0], systems)}"
    )


def cut_at(config: SearchConfig, limit: int | None) -> SearchConfig:
    """The configuration with its cuts at `limit`; as it is when there is none."""
    return config if limit is None else config.with_limit(limit)


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
