"""Writes the command that makes a document again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def spelled(job: str, *words: str, options: Mapping[str, object]) -> str:
    """A command line, quoted for a shell; options that are None are left out.

    >>> spelled("compare", "mine", "rrf(bm25, vector)", options={"--baseline": "bm25", "--split": None})
    "steelyard compare mine 'rrf(bm25, vector)' --baseline bm25"
    """
    parts = ["steelyard", job, *words]
    for name, value in options.items():
        parts += [] if value is None else [name, str(value)]
    return shlex.join(parts)
