"""How a configuration is written: as one would type it, and what it has that its system has not."""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system, written_name


def named(config: SearchConfig) -> str:
    """A configuration as one would write it: a system, its changed parameters, the strategy, unusual depths."""
    usual = find_system(config.name).config(config.limit).depths
    deep = {depth for name, depth in depths_read(config).items() if depth and depth != usual.get(name, depth)}
    depths = f" at depth {', '.join(map(str, sorted(deep)))}" if deep else ""
    system, _, parameters = written_name(config).rstrip("]").partition("[")
    moved = f" with {parameters}" if parameters else ""
    lead = "" if system in ("plain", str(config.effective)) else f"{system} with "
    return f"{lead}{config.effective}{moved}{depths}"


def settings(config: SearchConfig) -> dict[str, str]:
    """What a search has that its system has not, apart from the strategy; empty without anything.

    >>> settings(find_system("spec_kit[graph.hops=1]").config())
    {'settings': 'graph.hops=1'}
    """
    usual = find_system(config.name).config(config.limit)
    deep = {name: depth for name, depth in depths_read(config).items() if depth != usual.depths.get(name, depth)}
    told = [written_name(config).rstrip("]").partition("[")[2], *(f"{name}.depth={deep[name]}" for name in deep)]
    told += [f"finish={', '.join(map(str, config.finish)) or 'none'}"] if config.finish != usual.finish else []
    text = ", ".join(filter(None, told))
    return {"settings": text} if text else {}


def depths_read(config: SearchConfig) -> dict[str, int | None]:
    """The depth of every retriever whose list the strategy uses."""
    used = config.effective.signals()
    return {name: depth for name, depth in config.depths.items() if name in used}
