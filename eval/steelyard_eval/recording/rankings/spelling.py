"""Writes the command that makes a document again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from steelyard_eval.datasets import Dataset


def spelled(job: str, dataset: Dataset, *words: str, options: Mapping[str, object]) -> str | None:
    """A command line for the data set, quoted for a shell; None for a data set that is in memory alone.

    Options that are None are left out.

    >>> from steelyard_eval.datasets import load
    >>> from steelyard_eval.datasets.starter import starter
    >>> options = {"--baseline": "bm25", "--split": None}
    >>> spelled("compare", load(starter()), "rrf(bm25, vector)", options=options).rpartition("starter")[2]
    " 'rrf(bm25, vector)' --baseline bm25"
    """
    if dataset.in_memory:
        return None
    parts = ["steelyard", job, word(dataset.path), *words]
    for name, value in options.items():
        parts += [] if value is None else [name, str(value)]
    return shlex.join(parts)


def word(path: Path) -> str:
    """A path as a word of a command that is never read as an option.

    >>> word(Path("--update")), word(Path("mine"))
    ('./--update', 'mine')
    """
    return f"./{path}" if str(path).startswith("-") else str(path)
