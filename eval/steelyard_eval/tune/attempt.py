"""Results that say what to run: their weights file, and `*.try.json` beside it where something is worth trying."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.results import Reported


@dataclass(frozen=True, repr=False)
class ChosenWeights(Reported):
    """An answer on which weights to use; `record` is its JSON document.

    Attributes
    ----------
    config : SearchConfig or None
        What to run, as the weights file holds it: what was chosen under ship, else the current configuration;
        None where that is known by its lists alone.
    attempt : SearchConfig or None
        What is worth trying under try.
    interrupted : bool
        Whether Ctrl-C left something out.
    """

    config: SearchConfig | None
    attempt: SearchConfig | None = None
    interrupted: bool = False

    def save_weights(self, path: str | Path) -> list[Path]:
        """Write the weights file, and under try `*.try.json` beside it; returns what was written."""
        return save_weights(path, self.config, self.attempt)


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
