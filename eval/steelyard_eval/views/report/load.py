"""Reads the document that a report is made of; what cannot be read is told with its place."""

from __future__ import annotations

import shlex
from pathlib import Path

from steelyard.base.errors import DataError, shown, visible
from steelyard.base.inputs import read_bytes
from steelyard_eval.result import document
from steelyard_eval.result.structs import Result


def load(path: str | Path) -> Result:
    """The result in a file of `--json`, or in report.json; DataError for anything else."""
    source = shown(str(path), 1000)  # the end of a long path is what tells files apart
    if (Path(path) / "report.json").is_file():
        raise DataError(f"{source} is the folder of a report; name its report.json")
    if Path(path).is_dir():
        folder = shlex.quote(visible(str(path)))
        raise DataError(
            f"{source} is a folder, and a report is made of the results of one job; write them first: "
            f"`steelyard compare {folder} --out results.json`, or `steelyard recommend {folder} --report FOLDER`"
        )
    try:
        data = read_bytes(path)
    except OSError as error:
        raise DataError(f"cannot read the results file {source}: {error.strerror or error}") from None
    return document.read(data, source)
