"""Writes the weights file, and `*.try.json` beside it where something is worth trying."""

from __future__ import annotations

from pathlib import Path

from steelyard.config.search_config import SearchConfig


def save_weights(path: str | Path, config: SearchConfig | None, attempt: SearchConfig | None) -> list[Path]:
    """Write `config` to the path and `attempt` to `*.try.json` beside it, where there are any; what was written.

    An attempt of an earlier run is removed, or it would be taken for one of this run.
    """
    target = Path(path)
    files = {target: config, beside(target): attempt}
    for file, one in files.items():
        if one is not None:
            one.save(file)
    if attempt is None:
        beside(target).unlink(missing_ok=True)
    return [file for file, one in files.items() if one is not None]


def beside(path: Path) -> Path:
    """search-weights.try.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.try.json")
