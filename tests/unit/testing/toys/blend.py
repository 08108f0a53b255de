"""An exporter in one file: a program whose settings are two shares of min-max normalised lists."""

from __future__ import annotations

from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL
from steelyard_eval.export.base import Parts, Target, hybrid, index_notes

LACKS = {
    name: f"{how} has no counterpart: it normalizes every list by its minimum and maximum"
    for name, how in {
        "none": "normalize=none",
        "max": "normalize=max",
        "zscore": "normalize=zscore",
        "rank": "normalize=rank",
        RECIPROCAL: "rrf",
    }.items()
}
"""Why it cannot fuse in any other way, by the scale of the sum."""


def write(config: SearchConfig) -> Parts:
    """The share of each list under `blend`; raises Lost, with the reasons, for what it cannot rank alike."""
    fusion = hybrid(config.effective, ("minmax",), LACKS)
    return {"blend": fusion.shares() | {"limit": config.limit}}, index_notes(config, fusion.weights)


TARGET = Target(
    name="blend",
    follows="the settings page of Blend",
    says="tune weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)",
    write=write,
)
