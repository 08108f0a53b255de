"""One judge at work by duel: after every answer the next pair is that which tells most about the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard_eval.choose.duel import PairSelectionState, build_pair_selection, gains_of, graded
from steelyard_eval.choose.public import CONTENDERS, DEFAULT
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.compare.contenders import Contender, distinct, read_all, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists import Arena
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.judgments import Pair
from steelyard_eval.notebook.label.pool import PLACES, Firsts, Pool, pooled
from steelyard_eval.notebook.label.session import JUDGE, Session
from steelyard_eval.recording.workspace import Workspace

SECONDS = 15.0
"""A judgment takes, before the judge's own pace is known."""
PAUSE = 180.0
"""Seconds after which a judge was away."""


class DuelState(TypedDict):
    """Who leads of whom, who is shown as leading, after how many of the pairs it takes, and what more takes."""

    contenders: list[str]
    leader: str
    leads: str
    judged: int
    enough: int
    error: float
    stands: bool
    more: int
    minutes: int


class DuelSession(Session):
    """A session whose next pair depends on the answers; see `Session`. It ends when the verdict stands."""

    unsure: ClassVar[int | None] = None
    model = ""
    """Of the vectors."""
    _seen: tuple[int, PairSelectionState] | None = None

    @property
    def standing(self) -> PairSelectionState:
        """Where the contenders stand by the grades of the data set and of this judge."""
        if self._seen is None or self._seen[0] != hash(tuple(self.given.items())):
            pool = self.pool
            made = build_pair_selection(pool.labels, pool.gain, pool.query, self.model, pool.dataset.sha256)
            grades = graded(self.grades(), pool.query, pool.queries, pool.dataset)
            self._seen = hash(tuple(self.given.items())), made.standing(gains_of(grades))
        return self._seen[1]

    @property
    def next(self) -> Pair | None:
        """The pair to judge now; None when the verdict stands."""
        return next(self.upcoming(), None)

    def _in_order(self) -> Iterator[Pair]:
        """The pairs to judge, the most telling first; every answer may change the order."""
        if self.standing.stands:
            return
        passed = {place for pair, place in self.pool.places.items() if self._past(pair)}
        yield from map(self.pool.pair, self.standing.order(passed))

    def to_json(self) -> DuelState:
        """Who leads, by how much that can move, and what it still takes."""
        standing, pool = self.standing, self.pool
        count = int(standing.judged.sum())
        leader = pool.labels[int(standing.leaders[0])]
        return {
            "contenders": list(pool.labels),
            "leader": leader if count >= standing.enough or DEFAULT not in pool.labels else DEFAULT,
            "leads": leader,
            "judged": count,
            "enough": standing.enough,
            "error": standing.error,
            "stands": standing.stands,
            "more": standing.more,
            "minutes": round(standing.more * self._pace() / 60),
        }

    def _pace(self) -> float:
        """Seconds that a judgment of this judge takes."""
        times = sorted(datetime.fromisoformat(judgment.at).timestamp() for judgment in self.given.values())
        steps = [b - a for a, b in pairwise(times) if 0 < b - a < PAUSE]
        return float(np.median(steps)) if len(steps) >= 5 else SECONDS


def open_duel(
    dataset: Dataset,
    folder: Path,
    judge: str = JUDGE,
    split: str | None = None,
    seed: int = 0,
    *,
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> DuelSession:
    """A duel over the usual contenders; see `duel_pool`."""
    space = workspace() if workspace else Workspace.open(dataset, embedder)
    session = DuelSession(duel_pool(dataset, split, seed, space), folder, judge)
    session.model = space.model
    return session


def duel_pool(dataset: Dataset, split: str | None, seed: int, space: Workspace) -> Pool:
    """The pairs of a duel over the usual contenders (`public.CONTENDERS`), as far as there are any.

    Raises ConfigError where no query finds anything.
    """
    named = [contender for contender in distinct(read_all(list(CONTENDERS))) if _supplied(contender, space)]
    queries = dataset.split(split or "all")
    rows = Arena.of(dataset, named, PLACES, None, space).run(named, queries, timed=False)
    firsts = [_firsts(row.ranked.lists()) for row in rows]
    if not any(ranks for ranks, _ in firsts):
        raise ConfigError(f"no query of {dataset.called} finds anything; there is nothing to judge")
    return pooled(dataset, [row.label for row in rows], queries, firsts, seed)


def _supplied(one: Named | ListContender, space: Workspace) -> bool:
    """Whether the data set has what a contender needs; a strategy that lost a signal is another one."""
    if not isinstance(one, Named):
        return True
    row = Contender(one.label, one.config(Setting(PLACES, space.model)), one.kind)
    try:
        left, _ = usable(space, row)
    except ConfigError:
        return False
    return one.kind == "system" or left.config.effective == row.config.effective


def _firsts(lists: list[list[str]]) -> Firsts:
    return {(query, id_): rank for query, ids in enumerate(lists) for rank, id_ in enumerate(ids[:PLACES], 1)}, ()
