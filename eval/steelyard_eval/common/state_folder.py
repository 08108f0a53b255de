"""Where lies what only this user may know: what was imported from where, the key of hashes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """In XDG_STATE_HOME, else ~/.local/state."""
    home = environ.get("XDG_STATE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state") / "steelyard"
