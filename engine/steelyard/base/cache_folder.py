"""Where lies what can be made again: vectors that were bought, blocks of recordings, copies of databases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.base.errors import MachineError


def cache_folder(environ: Mapping[str, str]) -> Path:
    """STEELYARD_CACHE, else ``steelyard`` in the user's cache folder; MachineError where there is none."""
    folder = environ.get("STEELYARD_CACHE", "")
    home = environ.get("XDG_CACHE_HOME", "")
    try:
        return Path(folder) if folder else (Path(home) if home else Path.home() / ".cache") / "steelyard"
    except RuntimeError:  # no HOME, and no user of this number
        raise MachineError("there is no home folder for caches; set STEELYARD_CACHE") from None
