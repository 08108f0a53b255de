"""A name for a configuration, which tables of other collections know it by."""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr
from steelyard.systems import written_name

DIGITS = 6


def config_key(config: SearchConfig) -> str:
    """A name for a configuration: its system, the depths it reads, its strategy with weights that sum to 1."""
    return f"{setting_key(config)} {with_shares(config.effective)}"


def setting_key(config: SearchConfig) -> str:
    """The part of the name that does not depend on the strategy's weights."""
    strategy = config.effective
    read = sorted(strategy.signals() & config.retrievers.keys() or config.retrievers.keys())
    system = "plain" if config.system in ("fts", "bm25", "vector") else config.system
    moved = any(kept.parameters for kept in config.retrievers.values())  # to what may not be the system's own
    name = f"{system}:{config.profile}" + ("".join(written_name(config).partition("[")[1:]) if moved else "")
    return f"{name} {','.join(f'{n}={config.depths[n]}' for n in read)}"


def with_shares(expr: Expr) -> Expr:
    """The strategy with the weights of each sum scaled to 1, so that the scale does not part equal rankings."""
    if expr.routes:
        return expr.with_children([with_shares(child) for child in expr.children()])
    total = sum(expr.weights)
    return expr.with_weights([round(weight / total, DIGITS) for weight in expr.weights]) if total > 0 else expr
