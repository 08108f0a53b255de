"""Opens a judging session: reads the contenders, pools what they find, and continues what was judged before."""

from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.choose.duel import PLACES, PairSelectionState, build_pair_selection, gains_of
from steelyard_eval.choose.few_labels import fewest_labels
from steelyard_eval.choose.public import CONTENDERS, DEFAULT
from steelyard_eval.common.configurations import NamedConfig, Setting
from steelyard_eval.compare.contenders import Contender, GivenMany, distinct, read_all, read_config, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.judgment_file import Pair
from steelyard_eval.notebook.label.pool import Pool, pool_of
from steelyard_eval.notebook.label.session import JUDGE, Session
from steelyard_eval.recording.saved_runs import decided_on
from steelyard_eval.recording.workspace import Workspace

DEFAULT_CONTENDERS, BY_WORDS = "bm25, vector", "bm25, fts"
"""What finds the entries on which queries are judged where no contender is named; without vectors, the second."""


class DuelSession(Session):
    """A session whose next pair depends on the answers; see `Session`. It ends when the verdict stands.

    `model` is of the vectors.
    """

    _seen: tuple[int, PairSelectionState] | None = None

    def __init__(self, pool: Pool, folder: Path, judge: str, model: str) -> None:
        super().__init__(pool, folder, judge)
        self.model = model
        self.passed: set[Pair] = set()

    @property
    def standing(self) -> PairSelectionState:
        """Where the contenders stand by the grades of the data set and of this judge."""
        now = hash(tuple(self.given.items()))
        if self._seen is None or self._seen[0] != now:
            pool = self.pool
            made = build_pair_selection(pool.labels, pool.discount, pool.query, self.model, pool.dataset.sha256)
            gains = gains_of(self.grades(), pool.query, pool.queries, pool.dataset)
            self._seen = now, made.standing(gains)
        return self._seen[1]

    @property
    def screens(self) -> dict[str, list[Pair]]:
        """The next pair alone: every answer may change which that is."""
        return {pair[0]: [pair] for pair in islice(self.upcoming(), 1)}

    def upcoming(self) -> Iterator[Pair]:
        """The pairs to judge, the most telling first, but for labels of the data set that were taken back."""
        past = self.passed.union(filter(self.judged, self.pool.places))
        back = [pair for pair in super().upcoming() if self.pool.known[self.pool.places[pair]] >= 0]
        yield from back
        if not self.standing.is_settled:
            passed = {self.pool.places[pair] for pair in past.union(back)}
            yield from map(self.pool.pair, self.standing.order(passed))

    def leave(self, query: str) -> None:
        """Pass the next pair over, without an answer; it is asked again when the session is opened again."""
        self.passed.update(self.screens.get(query, ()))

    def to_json(self) -> dict[str, Any]:
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
            "stands": standing.is_settled,
            "more": standing.more,
        }


def open_judging(
    dataset: Dataset,
    contenders: GivenMany | None,
    folder: Path,
    judge: str = JUDGE,
    second_judge_of: str = "",
    split: str | None = None,
    seed: int = 0,
    *,
    random: bool | None = None,
    queries: Collection[str] = (),
    embedder: str = "auto",
    workspace: Callable[[], Workspace] | None = None,
) -> Session:
    """A duel where no contender is named, or the second judge of one; else whole queries, drawn at random.

    Where neither contenders nor `random` are given, the labels of the data set decide: after labels of queries
    more queries are drawn at random, and without labels or after a duel it is a duel (`Dataset.by_pairs`) between
    the usual contenders (`public.CONTENDERS`), as far as there are any. Where contenders are named, queries that
    have labels are asked, too, for what has none.
    The pool is over the queries of a split, all by default, or some by id; see `Session` and `pool_of`.

    Raises ConfigError for a duel in which no query finds anything.
    """
    space = cache(workspace or (lambda: Workspace.open(dataset, embedder)))
    if random is None:
        random = not second_judge_of and (contenders is not None or not dataset.by_pairs)
    duel = contenders is None and not random
    named: list[NamedConfig | ListContender]
    if duel:
        named = [one for one in map(read_config, CONTENDERS) if _supplied(one, space())]
    else:
        usual = DEFAULT_CONTENDERS if contenders is not None or space().model else BY_WORDS
        named = distinct(read_all(usual if contenders is None else contenders))
    asked = [query for query in dataset.split(split or "all") if not queries or query.id in queries]
    pool = pool_of(dataset, named, asked, seed, space)
    if duel and not len(pool):
        raise ConfigError(f"no query of {dataset.called} finds anything; there is nothing to judge")
    if duel and not second_judge_of:
        return DuelSession(pool, folder, judge, space().model)
    session = Session(pool, folder, judge, second_judge_of, random=random, labelled=contenders is not None)
    today = read_config(dataset.today).config(Setting(PLACES, space().model))
    session.enough = fewest_labels(today) if queries else MIN_TO_SHIP
    session.decided = decided_on(dataset) if random and not queries else None
    return session


def _supplied(one: NamedConfig, space: Workspace) -> bool:
    """Whether the data set has what a contender needs; a strategy that lost a signal is another one."""
    row = Contender(one.label, one.config(Setting(PLACES, space.model)), one.kind)
    try:
        left, _ = usable(space, row)
    except ConfigError:
        return False
    return one.kind == "system" or left.config.effective == row.config.effective
