"""Opens a judging session: reads the contenders, pools what they find, and continues what was judged before."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from steelyard_eval.choose.few_labels import MIN_QUERIES_WITH_LOG
from steelyard_eval.choose.scored import FEWEST
from steelyard_eval.common.configurations import Named
from steelyard_eval.compare.contenders import GivenMany, distinct, read_all
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.duel_session import duel_pool, open_duel
from steelyard_eval.notebook.label.pool import pool
from steelyard_eval.notebook.label.session import JUDGE, Session
from steelyard_eval.recording.runs import decided_on
from steelyard_eval.recording.workspace import Workspace

USUAL, BY_WORDS = "bm25, vector", "bm25, fts"
"""What finds the entries on which queries are judged where no contender is named; without vectors, the second."""


def open_judging(
    dataset: Dataset,
    contenders: GivenMany | None,
    folder: Path,
    judge: str = JUDGE,
    second_to: str = "",
    split: str | None = None,
    seed: int = 0,
    *,
    random: bool | None = None,
    queries: Collection[str] = (),
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> Session:
    """A duel where no contender is named, or the second judge of one; else the pool of what contenders find.

    Where neither contenders nor `random` are given, the labels of the data set decide: after labels of queries
    more queries are drawn at random, and without labels or after a duel it is a duel (`Dataset.by_pairs`).
    The pool is over the queries of a split, all by default, or some by id; see `Session` and `pool`.
    """
    opened = workspace or (lambda: Workspace.open(dataset, embedder))
    if random is None:
        random = contenders is None and not second_to and not dataset.by_pairs
    if contenders is None and not random:
        if not second_to:
            return open_duel(dataset, folder, judge, split, seed, workspace=opened)
        return Session(duel_pool(dataset, split, seed, opened()), folder, judge, second_to)
    space = opened() if contenders is None else None
    usual = USUAL if space is None or space.model else BY_WORDS
    named = distinct(read_all(usual if contenders is None else contenders))
    if space is None and any(isinstance(contender, Named) for contender in named):
        space = opened()
    asked = [query for query in dataset.split(split or "all") if not queries or query.id in queries]
    session = Session(pool(dataset, named, space, asked, seed), folder, judge, second_to, random=random)
    session.enough = MIN_QUERIES_WITH_LOG if queries else FEWEST
    session.decided = decided_on(dataset) if random and not queries else None
    return session
