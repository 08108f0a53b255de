"""The one way to write weights files: what a file held before is kept once beside it, as ``NAME.bak``."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError, shown
from steelyard.base.files import canonical, spare, write_text
from steelyard.base.inputs import read_bytes
from steelyard.config.search_config import SearchConfig, read_json
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.provenance import chosen_on
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said

Files = Mapping[Path, SearchConfig | None]
"""What each file is to hold; None for one that is to be removed."""
_log = logging.getLogger(__name__)


def write_weights(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Write these files, and remove those that are None; a line on each that was replaced."""
    lines = backup_and_describe(files, dataset)
    for file, config in files.items():
        if config is not None:
            config.save(file)
    for file, config in files.items():
        if config is None:
            file.unlink(missing_ok=True)
    return lines


def write_and_log(files: Files) -> list[Path]:
    """The same for Python, where the lines are logged; returns what was written."""
    for line in write_weights(files):
        _log.warning(line)
    return [file for file, config in files.items() if config is not None]


def backup_and_describe(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Copy each of these files that is replaced, or removed where it is None, and say how to undo that.

    A file whose search one of the new files has is passed over: nothing of it is lost.
    """
    new = [_search(config.to_json()) for config in files.values() if config is not None]
    lines = []
    for file in filter(Path.is_file, files):
        record, done = _record(file), "removed" if files[file] is None else "replaced"
        if _search(record) not in new:
            copy = spare(file)
            write_text(copy, read_bytes(file))
            undo, of = ["cp", word(copy), word(file)], _of_another(dataset, record)
            lines.append(say(Said("file_kept", {"file": str(file), "done": done, "data": of, "undo": undo})))
        elif files[file] is None:
            lines.append(say(Said("file_earlier", {"file": str(file), "done": done})))
    return lines


def contains_config(file: Path, record: object) -> bool:
    """Whether a file has this search."""
    return os.path.isfile(file) and _search(_record(file)) == _search(record)  # noqa: PTH113 -- fails for no name


def _of_another(dataset: Dataset | None, record: object) -> str | None:
    """Whose file it was, where its provenance names another data set."""
    name = chosen_on(record)
    return shown(name) if dataset and name not in ("", dataset.name) else None


def _record(file: Path) -> object:
    """The JSON of a file, which may hold anything; None where it is no JSON."""
    try:
        return read_json(file)
    except ConfigError:
        return None


def _search(record: object) -> Any:  # noqa: ANN401 -- whatever the file holds
    """A weights file without when and how it was chosen."""
    return canonical({**record, "provenance": None}) if isinstance(record, dict) else record
