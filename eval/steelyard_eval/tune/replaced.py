"""The one way to write weights files: nothing that those which are there already hold is lost."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError, DataError, shown
from steelyard.base.files import canonical, spare, write_text
from steelyard.base.inputs import read_bytes
from steelyard.config.search_config import SearchConfig, read_json
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.provenance import chosen_on
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.runs import KeptRun, kept

Files = Mapping[Path, SearchConfig | None]
"""What each file is to hold; None for one that is to be removed."""
MEASURE = ("compare", "gate")
"""Jobs that keep weights which they did not choose."""
_log = logging.getLogger(__name__)


def write_weights(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Write these files, and remove those that are None; a line on each that was replaced, see `keep_back`."""
    lines = keep_back(dataset, files)
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


def keep_back(dataset: Dataset | None, files: Files) -> list[str]:
    """Say of each of these files that is replaced, or removed where it is None, how to undo that.

    What no kept run of the data set has is copied beside it, without one all. A file that is replaced by the same
    search is passed over.
    """
    new = [_search(config.to_json()) for config in files.values() if config is not None]
    lines = []
    for file in filter(Path.is_file, files):
        record, done = _record(file), "removed" if files[file] is None else "replaced"
        if _search(record) not in new:
            lines.append(f"{file}: {done}{_of_another(dataset, record)}; to undo: {_undo(dataset, file, record)}")
        elif files[file] is None:
            lines.append(f"{file}: {done}, it was of an earlier run")
    return lines


def holds(file: Path, record: object) -> bool:
    """Whether a file has this search."""
    return os.path.isfile(file) and _search(_record(file)) == _search(record)  # noqa: PTH113 -- fails for no name


def _of_another(dataset: Dataset | None, record: object) -> str:
    """Whose file it was, where its provenance names another data set."""
    name = chosen_on(record)
    return f", it was of the data set {shown(name)}" if dataset and name not in ("", dataset.name) else ""


def _undo(dataset: Dataset | None, file: Path, record: object) -> str:
    """The command that writes a file again: of the last kept run that has it, else from a copy that is made.

    Of those the last that chose it: others measured it.
    """
    runs = [run for run in _runs(dataset) if run.file(file) == record]
    run = max(((run.kind not in MEASURE, run.id) for run in runs), default=(False, None))[1]
    if run is not None and dataset is not None:
        return str(spelled("runs", dataset, str(run), options={"--out": file}))
    held = read_bytes(file)
    copy = spare(file, held)
    if not os.path.lexists(copy):
        write_text(copy, held)
    return shlex.join(["cp", word(copy), word(file)])


def _runs(dataset: Dataset | None) -> list[KeptRun]:
    """The kept runs; a file of them that is damaged costs a copy and not the result."""
    try:
        return [] if dataset is None or dataset.in_memory else kept(dataset)
    except DataError:
        return []


def _record(file: Path) -> object:
    """The JSON of a file, which may hold anything; None where it is no JSON."""
    try:
        return read_json(file)
    except ConfigError:
        return None


def _search(record: object) -> Any:  # noqa: ANN401 -- whatever the file holds
    """A weights file without when and how it was chosen."""
    return canonical({**record, "provenance": None}) if isinstance(record, dict) else record
