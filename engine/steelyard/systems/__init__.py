"""The systems there are, by ``name:profile``; a name alone means its documented profile."""

from __future__ import annotations

from steelyard.errors import ConfigError, nearest, shown
from steelyard.systems import baselines, echovault, soleri
from steelyard.systems.base import System

SYSTEMS: dict[str, System] = {
    f"{system.name}:{system.profile}": system
    for system in (
        baselines.FTS,
        baselines.BM25,
        baselines.VECTOR,
        baselines.PLAIN,
        echovault.DOCUMENTED,
        echovault.SHIPPED,
        soleri.DOCUMENTED,
        soleri.SHIPPED,
    )
}

__all__ = ["SYSTEMS", "System", "find_system", "find_systems"]


def find_systems(names: list[str]) -> list[System]:
    """The systems of these names; ConfigError names every unknown one at once."""
    valid = {name.removesuffix(":documented"): system for name, system in SYSTEMS.items()} | SYSTEMS
    short = [name.removesuffix(":documented") for name in SYSTEMS]
    unknown = [name for name in names if name not in valid]
    problems = [f"unknown system {shown(name)}{nearest(name.partition(':')[0], short)}" for name in unknown]
    if problems:
        raise ConfigError("; ".join(problems))
    return [valid[name] for name in names]


def find_system(name: str) -> System:
    """The system of one name."""
    return find_systems([name])[0]
