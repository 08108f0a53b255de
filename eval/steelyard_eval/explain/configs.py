"""The configuration to explain, without what this data set cannot supply."""

from __future__ import annotations

from dataclasses import replace

from steelyard.config.search_config import SearchConfig
from steelyard.retrievers import LAYERS
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.recording.workspace import Workspace


def left_of(space: Workspace, config: SearchConfig, label: str) -> SearchConfig:
    """Remove the signals that this data set cannot supply; ConfigError when nothing is left."""
    return usable(space, Contender(label, config, "system"))[0].config


def reaching(config: SearchConfig, size: int) -> SearchConfig:
    """Make every list as long as the corpus, to find the position of an entry beyond the depth."""
    retrievers = {
        name: settings if name in LAYERS else replace(settings, depth=max(settings.depth or 1, size))
        for name, settings in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)
