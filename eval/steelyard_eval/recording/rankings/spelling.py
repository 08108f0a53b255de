"""Writes the command that makes a document again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from steelyard_eval.datasets import Dataset

EMBED = frozenset("compare recommend tune learn judge gate explain".split())  # noqa: SIM905 -- one line
"""The commands that search a data set, and take the option --embedder."""


def choice(dataset: Dataset) -> dict[str, object]:
    """The option by which a command embeds as this one did, where dataset.json does not say it."""
    return {"--embedder": dataset.embedder} if dataset.chosen else {}


def words_of(job: str, dataset: Dataset, *words: str, options: Mapping[str, object]) -> list[str]:
    """The words of a command for the data set; none for a data set that is in memory alone.

    Options that are None are left out, and those that are True have no value. What embeds is named where it was
    chosen and dataset.json does not say it. No word is read as an option: it may
    be an id that anybody chose.

    >>> from steelyard_eval.datasets import load
    >>> from steelyard_eval.datasets.starter import starter
    >>> options = {"--current": "bm25", "--split": None}
    >>> words_of("compare", load(starter()), "rrf(bm25, vector)", options=options)[3:]
    ['rrf(bm25, vector)', '--current', 'bm25']
    """
    if dataset.in_memory:
        return []
    own, chosen = [word(dataset.path), *words], []
    if job in EMBED and "--recording" not in options:
        options = {**choice(dataset), **options}
    for name, value in options.items():
        chosen += [] if value is None else [name] if value is True else [name, str(value)]
    dashed = any(text.startswith("-") for text in words)
    return ["steelyard", job, *([*chosen, "--", *own] if dashed else [*own, *chosen])]


def spelled(job: str, dataset: Dataset, *words: str, options: Mapping[str, object]) -> str | None:
    """The same, quoted for a shell; None for a data set that is in memory alone."""
    return shlex.join(words_of(job, dataset, *words, options=options)) or None


def word(path: Path) -> str:
    """A path as a word of a command that is never read as an option.

    >>> word(Path("--update")), word(Path("mine"))
    ('./--update', 'mine')
    """
    return f"./{path}" if str(path).startswith("-") else str(path)
