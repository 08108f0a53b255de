"""What is compared: configurations under labels, and what is left of them on a given data set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system, find_systems
from steelyard_eval.recording.record import needed
from steelyard_eval.recording.workspace import Workspace


@dataclass(frozen=True)
class Contender:
    """One row of a comparison: a configuration under a label."""

    label: str
    config: SearchConfig
    kind: str

    @property
    def family(self) -> str:
        """What kind of fusion it is; a single signal is none."""
        return self.config.effective.shown_as


def contenders(
    systems: Iterable[str],
    strategies: Iterable[str],
    limit: int,
    model: str,
    labels: Mapping[str, str] | None = None,
) -> list[Contender]:
    """Configurations to compare, at one limit; ConfigError names every unknown system at once.

    Strategies are fused over fts, bm25, vector and the layers, by the system `plain`; `labels` names
    them.
    """
    found = [
        Contender(name.removesuffix(":documented"), system.config(limit, model, os.environ), "system")
        for name, system in zip(systems, find_systems(list(systems)), strict=True)
    ]
    named = labels or {}
    for text in strategies:
        expr = parse_strategy(text)
        config = find_system("plain").config(limit, model).with_strategy(expr)
        found.append(Contender(named.get(text, str(expr)), config, "strategy"))
    twice = sorted({c.label for c in found if [d.label for d in found].count(c.label) > 1})
    if twice:
        raise ConfigError(f"{', '.join(twice)} is named twice; name each configuration once")
    if not found:
        raise ConfigError("there is nothing to compare; name a system or a strategy")
    return found


def usable(space: Workspace, row: Contender) -> tuple[Contender, list[str]]:
    """The contender with what is left of its strategy on this data set, and a notice when that is less.

    Raises ConfigError when nothing is left.
    """
    asked = needed([row.config])
    missing = sorted(set(asked) - set(space.usable(asked)))
    left = row.config.without(missing)
    lack = f"{', '.join(missing)}, which {space.dataset.name} cannot give (embedder: {space.model or 'none'})"
    if left is None:
        raise ConfigError(f"{row.label} needs {lack}; leave it out, or use another embedder")
    if left == row.config.effective:
        return row, []
    config = replace(row.config, strategy=left, by_intent={})
    return replace(row, config=config), [f"{row.label} runs as {left}, without {lack}"]
