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
    """A duel where no contender is named, or the second judge of one; else what `open_session` opens."""
    opened = workspace or (lambda: Workspace.open(dataset, embedder))
    if contenders is not None or random:
        given = USUAL if contenders is None else contenders
        return open_session(
            *(dataset, given, folder, judge, second_to, split, seed),
            random=random,
            queries=queries,
            workspace=opened,
        )
    if not second_to:
        return open_duel(dataset, folder, judge, split, seed, workspace=opened)
    return Session(duel_pool(dataset, split, seed, opened()), folder, judge, second_to)


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
    queries: Collection[str] = (),
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> Session:
    """Pool the contenders over the queries of a split, all by default, or some by id; see `Session` and `pool`."""
    named = distinct(read_all(contenders))
    opened = workspace or (lambda: Workspace.open(dataset, embedder))
    space = opened() if any(isinstance(one, Named) for one in named) else None
    asked = [query for query in dataset.split(split or "all") if not queries or query.id in queries]
    return Session(pool(dataset, named, space, asked, seed), folder, judge, second_to, random=random)
