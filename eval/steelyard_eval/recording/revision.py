"""Which commit is checked out, without running git."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.base.inputs import read_text

_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision(folder: Path) -> str:
    """The commit that is checked out here, read from git's own files; empty where there is none."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            try:
                head = read_text(git / "HEAD").strip()
                name = head.removeprefix("ref: ")
                if name != head and re.fullmatch(r"refs/[\w./-]+", name) and ".." not in name:
                    head = read_text(git / name).strip()
            except (OSError, UnicodeDecodeError):
                return ""
            return head if _COMMIT.fullmatch(head) else ""
    return ""
