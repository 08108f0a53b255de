"""Opens a judging session: reads the contenders, pools what they find, and continues what was judged before."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from steelyard_eval.common.configurations import Named
from steelyard_eval.compare.contenders import GivenMany, distinct, read_all
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.duel_session import duel_pool, open_duel
from steelyard_eval.notebook.label.pool import pool
from steelyard_eval.notebook.label.session import JUDGE, Session
from steelyard_eval.recording.workspace import Workspace

USUAL = "bm25, vector"
"""Between which whole queries are judged where no contender is named."""


def open_judging(
    dataset: Dataset,
    contenders: GivenMany | None,
    folder: Path,
    judge: str = JUDGE,
    second_to: str = "",
    split: str | None = None,
    seed: int = 0,
    *,
    random: bool = False,
    queries: Collection[str] = (),
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> Session:
    """A duel where no contender is named, or the second judge of one; else the pool of what contenders find.

    The pool is over the queries of a split, all by default, or some by id; see `Session` and `pool`.
    """
    opened = workspace or (lambda: Workspace.open(dataset, embedder))
    if contenders is None and not random:
        if not second_to:
            return open_duel(dataset, folder, judge, split, seed, workspace=opened)
        return Session(duel_pool(dataset, split, seed, opened()), folder, judge, second_to)
    named = distinct(read_all(USUAL if contenders is None else contenders))
    space = opened() if any(isinstance(one, Named) for one in named) else None
    asked = [query for query in dataset.split(split or "all") if not queries or query.id in queries]
    return Session(pool(dataset, named, space, asked, seed), folder, judge, second_to, random=random)
