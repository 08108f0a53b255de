"""The history of a baseline: one line for every update, who, why and both values, in a file that only grows.

Each line has the hash of the one before, and the baseline that of the last, so that a line that was changed or
removed is noticed.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON, spare
from steelyard.base.inputs import read_bytes, read_text
from steelyard_eval.common.documents.gate import HistoryRecord
from steelyard_eval.datasets.states import hashed
from steelyard_eval.recording.rankings.spelling import word

KEYS = HistoryRecord.__annotations__.keys()


def history_path(baseline: Path) -> Path:
    """Where the history of a baseline is: beside it, as ``baseline.history.jsonl``."""
    return baseline.with_name(f"{baseline.stem}.history.jsonl")


def load_history(path: Path) -> list[HistoryRecord]:
    """Read the history, oldest first; empty without a file. DataError when a line was changed or removed."""
    place = shown(str(path), PATH_WIDTH)
    try:
        lines = [line for line in read_text(path).split("\n") if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {place}: {getattr(error, 'strerror', None) or error}") from None
    records: list[HistoryRecord] = []
    for number, line in enumerate(lines, 1):
        record = _read(line)
        if record is None or record.get("previous") != last_hash(records):
            raise DataError(
                f"{place}:{number}: the line does not follow from the one before it; the file only grows, so "
                "restore it from version control"
            )
        records.append(record)
    return records


def _read(line: str) -> HistoryRecord | None:
    try:
        record: HistoryRecord = STRICT_JSON.decode(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.keys() == KEYS else None


def last_hash(history: Sequence[HistoryRecord]) -> str:
    """The hash of the last line; empty without one."""
    return hashed(history[-1]) if history else ""


def history_text(history: Sequence[HistoryRecord]) -> str:
    """The file, a line an update."""
    return "".join(f"{json.dumps(line, sort_keys=True, ensure_ascii=False)}\n" for line in history)


def continued(history: Sequence[HistoryRecord], line: HistoryRecord) -> list[HistoryRecord]:
    """The history with one more line."""
    return [*history, {**line, "previous": last_hash(history)}]


def kept_back(baseline: Path) -> dict[Path, bytes]:
    """What a history and its baseline hold, by the files to keep it in, which are a baseline with its history."""
    held = read_bytes(baseline)
    copy, history = spare(baseline, held), history_path(baseline)
    return {history_path(copy): read_bytes(history) if history.exists() else b"", copy: held}


def to_have_again(copies: Iterable[Path], files: Iterable[Path], labels: str = "") -> str:
    """The commands that bring back what was kept, in the order of the files; empty where nothing was.

    `labels` is the command that brings back the labels of then, where others came since.
    """
    commands = [shlex.join(["cp", word(copy), word(file)]) for copy, file in zip(copies, files, strict=False)]
    kept = f"the baseline before is kept{', and so are its labels' if labels else ''}"
    return f"{kept}; to undo: {' && '.join(filter(None, (*commands, labels)))}" if commands else ""


def author() -> str:
    """Who updates: STEELYARD_AUTHOR, GITHUB_ACTOR, the user of git, else of the machine."""
    named = os.environ.get("STEELYARD_AUTHOR") or os.environ.get("GITHUB_ACTOR") or _git_user()
    try:
        return named or getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "unknown"


def _git_user() -> str:
    try:
        done = subprocess.run(
            ["git", "config", "user.name"],  # noqa: S607 -- whatever git the user has
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
