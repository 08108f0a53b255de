"""system-spec-kit: its own `configs/search-weights.json`."""

from __future__ import annotations

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.systems.spec_kit.foreign import write_foreign
from steelyard_eval.export.base import Lost, Parts, Target


def write(config: SearchConfig) -> Parts:
    """The file's parts."""
    try:
        record = write_foreign(config)
    except ConfigError as error:
        raise Lost(str(error)) from None
    notes = [
        "the program reads only smartRanking and maxTriggersPerMemory of this file; rrfFusion and crossEncoder "
        "have to be set in its code",
        "what boost(...) multiplies by is not in the file",
    ]
    return record, notes


TARGET = Target(
    "spec_kit",
    "system-spec-kit's configs/search-weights.json, version 1.8.0",
    "tune rrf over vector, bm25 and graph, with k, a bonus times(x) and a weight for graph alone",
    write,
)
