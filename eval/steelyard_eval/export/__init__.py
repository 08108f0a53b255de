"""A tuned configuration in the terms of the systems people run: ``export(config, "opensearch")``.

To add a target: a module with a `TARGET`, one line here.
"""

from __future__ import annotations

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError, nearest, shown
from steelyard.finish import Cut
from steelyard.stores.base import COSINE
from steelyard_eval.export import (
    cortex_mem,
    echovault,
    elasticsearch,
    moltnet,
    opensearch,
    qdrant,
    soleri,
    spec_kit,
    vespa,
    weaviate,
)
from steelyard_eval.export.base import Export, Lost, Target

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET
    for module in (
        echovault,
        moltnet,
        soleri,
        spec_kit,
        cortex_mem,
        opensearch,
        elasticsearch,
        vespa,
        weaviate,
        qdrant,
    )
}

__all__ = ["TARGETS", "Export", "Lost", "Target", "export", "say"]


def export(config: SearchConfig, to: str) -> Export:
    """The configuration in the terms of a target.

    Raises ConfigError for an unknown target, and where the strategy cannot be said in its terms: the message
    names everything that would be lost, and what can be said.
    """
    if to not in TARGETS:
        raise ConfigError(f"unknown export target {shown(to)}{nearest(to, TARGETS)}")
    try:
        return say(config, TARGETS[to])
    except Lost as lost:
        strategy = shown(str(config.effective), 200)
        raise ConfigError(
            f"strategy {strategy} cannot be said in {to}'s terms: {lost}. To export, {TARGETS[to].says}"
        ) from None


def say(config: SearchConfig, target: Target) -> Export:
    """The export itself; Lost where the target has no words for the strategy."""
    strategy = config.effective
    if strategy.by_query and not target.intents:
        raise Lost(strategy.describe().beyond)
    own = target.name == config.system
    if not own and (losses := _elsewhere(config)):
        raise Lost(*losses)
    parts, notes = target.write(config)
    return Export(target, str(strategy), parts, (*notes, *([] if own else _left_out(config))))


def _elsewhere(config: SearchConfig) -> list[str]:
    """What changes the ranking in every system but the configuration's own."""
    far = [name for name, retriever in config.retrievers.items() if retriever.similarity != COSINE]
    return (
        [f"{', '.join(far)} compared by {config.retrievers[far[0]].similarity}: only cosine is said"]
        if far
        else []
    )


def _left_out(config: SearchConfig) -> list[str]:
    """What happens to the list after ranking, in the configuration's own system only."""
    stages = [str(stage) for stage in config.finish if stage != Cut(config.limit)]
    return [f"left out, since it acts on the finished list: {', '.join(stages)}"] if stages else []
