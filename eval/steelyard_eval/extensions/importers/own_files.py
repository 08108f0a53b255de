"""Files that Steelyard itself writes and that hold no entries: what they are, and what takes them."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.base.errors import shown
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import open_regular
from steelyard_eval.export import TARGETS

LARGEST = 2**20
"""Bytes; a larger file is none of them."""
_COMMENT = re.compile(r"# strategy: [^\n]*\n# follows: ([^\n]*)\n")
"""How an export begins that is not JSON."""


def own_file(path: Path) -> str:
    """What a file of ours is and which command takes it; empty for any other file."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return ""
        with open_regular(path) as stream:
            text = stream.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    file = shown(str(path))
    target = _target(text)
    if target:
        return (
            f"{file} is what steelyard export --to {target} wrote, a configuration for {target} without entries; "
            f"give it to {target}, and search here with the weights file that it was made from"
        )
    if target is None:
        return (
            f"{file} is a weights file of Steelyard and holds no entries; use it by steelyard search VAULT QUERY "
            f"--weights {file}, or translate it by steelyard export {file} --to TARGET"
        )
    return ""


def _target(text: str) -> str | None:
    """The target of an export; None for a weights file, empty for anything else."""
    if begin := _COMMENT.match(text):
        return next((name for name, target in TARGETS.items() if target.follows == begin[1]), "")
    if text.lstrip()[:1] != "{":
        return ""
    try:
        record = STRICT_JSON.decode(text)
    except (ValueError, RecursionError):
        return ""
    about = record.get("about")
    if isinstance(about, dict) and {"target", "follows", "strategy"} <= about.keys():
        return about["target"] if about["target"] in TARGETS else ""
    return None if {"strategy", "retrievers", "schema_version"} <= record.keys() else ""
