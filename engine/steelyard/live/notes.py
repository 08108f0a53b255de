"""What a result says beside its hits: what keywords found alone, what was left out, and what may be missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steelyard.base.errors import shown
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.kinds import adding
from steelyard.finish import Floor, Mmr
from steelyard.fusion import Expr
from steelyard.live.sources import Sources
from steelyard.retrievers import EMBEDDING

_WHY = {Floor: "its scale is another one", Mmr: "it has nothing to compare"}
"""Why a stage is left out without vectors."""


def without_vectors(
    sources: Sources, config: SearchConfig, used: SearchConfig, strategy: Expr, vectors: bool, mode: str
) -> Iterator[str]:
    """What keywords alone found although vectors were asked for, and the stages of `config` left out of `used`."""
    if not vectors:
        if mode == "always" and strategy != config.effective:
            own = {space.model for space, _ in sources.store.spaces()}
            lacked, vault = min(config.models - own, default=""), getattr(sources.store, "path", "")
            what = f"{shown(lacked)}, the configured model" if lacked else "the configured model"
            yield f"the vault has no vectors of {what}; keywords answered alone{adding(lacked, vault, own)}"
    elif strategy.signals() & EMBEDDING:
        for name in sources.keywords_only():
            lacks = f"the tier {shown(name)} has no vectors of the configured model"
            yield f"{lacks}; keywords alone found its entries"
    for stage in config.finish:
        if stage not in used.finish and type(stage) in _WHY:
            yield f"{stage} was left out: without vectors {_WHY[type(stage)]}"


def approximately(sources: Sources, retrievers: Iterable[str]) -> Iterator[str]:
    """That one of the retrievers may have missed what is near."""
    if how := sources.approximate(retrievers):
        yield f"vectors were searched by {how}, which may miss some of the nearest"
