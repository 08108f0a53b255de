"""Which sources this user imported into which folders.

A folder may come from a stranger, and its dataset.json may name any path. So `refresh` opens what it names only
where this user's own import wrote the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from steelyard.base.errors import MachineError
from steelyard.base.files import canonical, write_text
from steelyard_eval.common.state_folder import state_folder


def remember(folder: Path, source: Mapping[str, object]) -> None:
    """Keep that this user imported the source into the folder; a home that cannot be written is no error."""
    place = _place(folder)
    text = canonical(dict(source))
    if _text(place) == text:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, text)
    except (OSError, MachineError):
        return


def is_remembered(folder: Path, source: Mapping[str, object]) -> bool:
    """Whether this user imported this very source into the folder."""
    return _text(_place(folder)) == canonical(dict(source))


def _text(place: Path) -> str:
    return place.read_text(encoding="utf-8") if place.is_file() else ""


def _place(folder: Path) -> Path:
    """A file of the user's state for this folder."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return state_folder() / "imports" / f"{name}.json"
