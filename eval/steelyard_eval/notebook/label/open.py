"""Opens a judging session: reads the contenders, pools what they find, and continues what was judged before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from steelyard_eval.compare.contenders import GivenMany, Named, distinct, read_all
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.pool import pool
from steelyard_eval.notebook.label.session import JUDGE, Session
from steelyard_eval.recording.workspace import Workspace


def open_session(
    dataset: Dataset,
    contenders: GivenMany,
    folder: Path,
    judge: str = JUDGE,
    second_to: str = "",
    split: str | None = None,
    seed: int = 0,
    *,
    random: bool = False,
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> Session:
    """Pool the contenders over the queries of a split, all by default; see `Session` and `pool`."""
    named = distinct(read_all(contenders))
    opened = workspace or (lambda: Workspace.open(dataset, embedder))
    space = opened() if any(isinstance(one, Named) for one in named) else None
    pairs = pool(dataset, named, space, dataset.split(split or "all"), seed)
    return Session(pairs, folder, judge, second_to, random=random)
