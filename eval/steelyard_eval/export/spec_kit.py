"""system-spec-kit: its own `configs/search-weights.json`."""

from __future__ import annotations

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import extension
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Cut
from steelyard_eval.export.base import Lost, Parts, Target


def write(config: SearchConfig) -> Parts:
    """The file's parts, with a note on every setting that importing it does not bring back."""
    own_file = extension("spec_kit_file")
    try:
        record = own_file.write_foreign(config)
    except ConfigError as error:
        raise Lost(str(error)) from None
    fusion = record["rrfFusion"]
    zeros = [name for name in ("k", "convergenceBonus", "graphWeightBoost") if not fusion[name]]
    notes = [
        "the program reads only smartRanking and maxTriggersPerMemory of this file; rrfFusion and crossEncoder "
        "have to be set in its code",
        *([f"the program takes 0 for not given: {', '.join(zeros)}"] if zeros else []),
        *_left_out(config, own_file.read_foreign(record)),
    ]
    return record, notes


def _left_out(config: SearchConfig, back: SearchConfig) -> list[str]:
    """What a configuration has beside its strategy, and the file has no words for."""
    ours, theirs = _settings(config), _settings(back)
    return [
        f"not in the file: {name} is {ours.get(name)}, which comes back as {theirs.get(name)}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _settings(config: SearchConfig) -> dict[str, object]:
    """The limit, the stages, and the settings of the lists that are read, each by its name."""
    read = config.effective.signals() & config.retrievers.keys()
    facts: dict[str, object] = {"limit": config.limit, "rewrite": config.rewrite, "rerank": config.rerank.provider}
    facts["finish"] = ", ".join(str(stage) for stage in config.finish if stage != Cut(config.limit)) or "cut alone"
    for name in read:
        options = {key: value for key, value in config.retrievers[name].to_json().items() if key != "model"}
        facts |= {f"retrievers.{name}.{key}": value for key, value in options.items()}
    return facts


TARGET = Target(
    "spec_kit",
    "system-spec-kit's configs/search-weights.json, version 1.8.0",
    "tune boost(rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1)), promised, document_type)",
    write,
)
