"""Writing files whole or not at all, and JSON with one form only."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path

from steelyard.errors import PATH_WIDTH, MachineError, shown


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number; write a finite one")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal[:20]} is too large; write a smaller number")
    return value


STRICT_JSON = json.JSONDecoder(parse_constant=_constant, parse_float=_finite)
"""Reads JSON as its standard says: no NaN, no Infinity, no number that overflows (ValueError)."""


def canonical(record: object) -> str:
    """JSON with sorted keys and two blanks of indent; NaN is refused. Same value, same bytes."""
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 to a temporary file beside `path`, then rename it, so that no half file is left.

    Raises MachineError when the folder cannot be written or the disk is full.
    """
    target = Path(path)
    temporary = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)  # noqa: PTH101 -- mkstemp makes files that only the owner may read
        os.replace(temporary, target)  # noqa: PTH105 -- the atomic rename this function is about
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise MachineError(f"cannot write {shown(str(target), PATH_WIDTH)}: {error.strerror or error}") from None
    except BaseException:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise
