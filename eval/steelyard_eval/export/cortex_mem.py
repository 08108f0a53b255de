"""Cortex-Mem: how many results, and how similar they must be; everything else is fixed in its program.

Source: Cortex-Mem's document, search parameters (8.1) and usage examples (10).
"""

from __future__ import annotations

import re

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import changes
from steelyard.systems import find_system
from steelyard_eval.export.base import Lost, Parts, Target

_THRESHOLD = re.compile(r"(?:threshold|cut)=(-?[0-9.e-]+)")
FIXED = (
    "its layers, their weights, its ladder of thresholds and its intents are fixed in its program; "
    "it can only be given a limit and a threshold"
)


def write(config: SearchConfig) -> Parts:
    """The options of a search: the limit, and the threshold where it is not the program's own."""
    ask = find_system(config.name if config.system == "cortex_mem" else "cortex_mem").searching.ask
    if ask is None or config.by_intent:
        raise Lost(FIXED)
    if str(ask(None, config.limit)) == str(config.strategy):
        return {"options": {"limit": config.limit}}, []
    for threshold in sorted({float(text) for text in _THRESHOLD.findall(str(config.strategy))}):
        if str(ask(threshold, config.limit)) == str(config.strategy):
            return {"options": {"limit": config.limit, "threshold": threshold}}, []
    if config.system != "cortex_mem":
        raise Lost(FIXED)
    lost = changes(ask(None, config.limit), config.strategy)
    ours = not any(change.name.startswith("strategy") for change in lost)
    raise Lost(FIXED, *(map(str, lost) if ours else ()))


TARGET = Target(
    "cortex_mem",
    "Cortex-Mem's document, search parameters",
    "tune nothing but its threshold; steelyard search --system cortex_mem --set threshold=0.4 shows what one does",
    write,
    intents=True,
)
