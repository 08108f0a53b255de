"""Floors with a bound: below which score a search had better show nothing, and what can be promised of that.

What is *lost* can be promised from ordinary labels: the share of the relevant entries in a list that the floor
drops. It grows with the floor, so Student's one-sided bound on its mean holds for the highest floor that passes
without a correction for how many were tried. How many questions without an answer are answered all the same can
be promised only from such questions, by the binomial distribution. What share of the shown is wrong cannot be
promised at all: it depends on how many questions have no answer, which no label set tells.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import bdtr, stdtrit

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, quote
from steelyard.config import SearchConfig
from steelyard.finish import FUSED, Floor
from steelyard.grammar import number_text
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.choose.answer import ChosenAnswer
from steelyard_eval.common.process import day
from steelyard_eval.compare.contenders import Given, read_config
from steelyard_eval.compare.lists_and_latency import without_floors
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.judgments import recall_loss
from steelyard_eval.measures.paired import exact_interval
from steelyard_eval.measures.spread import spread
from steelyard_eval.recording.record import ranks_candidates, record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Fact, Message

POOL = 100  # how deep a retriever searches that the floor reads and the configuration does not have


@dataclass(frozen=True)
class FloorResult:
    """What was found."""

    config: SearchConfig  # the configuration with its floor, and without one where none keeps the promises
    least: float | None  # the floor; None where no promise is kept, or none is needed
    claims: list[dict[str, Any]]  # the promises in numbers, as the provenance of `config` has them (`claim`)
    message: Message  # what the floor promises, or why there is none


def floored(
    result: ChosenAnswer, dataset: Dataset, promises: str, embedder: str
) -> tuple[ChosenAnswer, list[str]]:
    """A result whose `config` and `attempt` have floors that keep these promises, and what they promise."""
    asked = promises_of(promises)
    given = {"config": result.config, "attempt": result.attempt}
    floors = {name: find_floor(dataset, of, asked, embedder) for name, of in given.items() if of is not None}
    kept: dict[str, Any] = {name: floor.config for name, floor in floors.items()}
    return replace(result, **kept), list(dict.fromkeys(say(floor.message) for floor in floors.values()))


def promises_of(text: str) -> dict[str, float]:
    """Read promises as they are written for commands; ConfigError for what is none.

    >>> promises_of("lost=10%, false=0.05")
    {'lost': 0.1, 'false': 0.05}
    """
    promises: dict[str, float] = {}
    for part in text.split(","):
        name, _, written = (word.strip() for word in part.partition("="))
        if name not in ("lost", "false"):
            raise ConfigError(f"a floor can promise lost or false, not {quote(name)}; write lost=10%")
        try:
            promises[name] = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
        except ValueError:
            raise ConfigError(f"{quote(written)} is not a share; write 10% or 0.1") from None
        if not 0 < promises[name] < 1:
            raise ConfigError(f"{name} is {quote(promises[name])}; write a share between 0 and 1, such as 0.1")
    return promises


def find_floor(
    dataset: Dataset, contender: Given, promises: Mapping[str, float], embedder: str = "auto"
) -> FloorResult:
    """Find the highest floor on the fused score that keeps its promises on the labelled queries.

    These are the share ``recall_loss`` at most, the share ``false`` at most, either or both.
    Raises ConfigError where labels are too few for a promise, for false ones of queries that are marked as
    ``"answerable": false``, where the floor's scale is not known for these lists, or where what the floor reads
    would find candidates that the configuration ranks, too.
    """
    space = Workspace.open(dataset, embedder)
    row, _ = Source.live(space).supplied(read_config(contender), None)
    config, scale = row.config, Floor(0.0, on=FUSED)
    if missing := sorted(set(scale.signals) - set(space.usable(scale.signals))):
        raise ConfigError(f"{scale.on} needs {', '.join(missing)}, which {dataset.called} cannot supply")
    searched = reading(config, scale)
    added = searched.retrievers.keys() - config.retrievers.keys()
    if added and ranks_candidates(config.effective):
        raise ConfigError(
            f"the floor reads {', '.join(sorted(added))}, which would change the results of {config.name}; "
            "leave the floor out"
        )
    queries = [query for query in dataset.split(None) if query.id in dataset.qrels or not query.answerable]
    bare = replace(searched, finish=without_floors(config.finish))
    table = record(space, queries, [replace(bare, finish=(*bare.finish, scale))])
    tested, bounds = {}, {}
    for name, find, kind in (("lost", floor_for_recall_loss, True), ("false", floor_for_false_answers, False)):
        if name in promises:
            asked = [query for query in queries if query.answerable is kind]
            tested[name] = floor_lists(dataset, asked, table, bare, scale)
            bounds[name] = find(tested[name], promises[name])
    least = floor_for_all(bounds)
    claims = [claim(name, promises[name], bound, tested[name], least) for name, bound in bounds.items()]
    said = describe_floor(least, claims)
    if least is None or not math.isfinite(least):
        return FloorResult(replace(config, finish=bare.finish), None, claims, said)
    measured = {"on": str(scale.on), "sure": CONFIDENCE, "claims": claims, "date": day(time.time)}
    measured |= {"model": space.model, "dataset_sha256": dataset.sha256}
    finish = (*bare.finish, replace(scale, least=least))
    final = replace(bare, finish=finish, provenance={**bare.provenance, "floor": measured})
    return FloorResult(final, least, claims, said)


def reading(config: SearchConfig, scale: Floor) -> SearchConfig:
    """The configuration with the retrievers that a floor reads; those that it lacks search for the floor alone."""
    deep = max([POOL, *(kept.depth for kept in config.retrievers.values() if kept.depth is not None)])
    more = {name: RetrieverConfig(depth=deep) for name in sorted(scale.signals & RETRIEVER_KINDS.keys())}
    return replace(config, retrievers=more | dict(config.retrievers))


def floor_lists(
    dataset: Dataset, queries: Sequence[Query], table: SignalTable, config: SearchConfig, scale: Floor
) -> "ScoredResults":
    """What a configuration shows for some of the queries of a recording, on the floor's scale."""
    run = replay(table, config)
    number = {id_: i for i, id_ in enumerate(table.queries)}
    spans = [np.arange(*run.ranking.offsets[number[q.id] : number[q.id] + 2]) for q in queries]
    places = np.concatenate([np.zeros(0, np.int64), *spans])
    return ScoredResults(
        offsets=np.cumsum([0, *map(len, spans)]),
        score=scale.scores(run.table)[run.ranking.row[places]],
        relevant=run.ranked.relevant(dataset.qrels)[places],
        unit=unit_numbers(queries),
    )


CONFIDENCE = 0.9  # how sure a floor's promise is: of ten label sets, nine give a floor that keeps it
MIN_QUERIES_FOR_FLOOR = 40  # with a relevant hit; with fewer the bound on a mean does not hold: losses are skewed
MIN_GROUPS = 10  # below which it is broken more often than it says: of 4 groups in 21%, of 6 in 14% (simulated)
CANDIDATE_FLOORS = 201  # quantiles of the scores that are tried as floors
DIGITS = 1e5  # floors are written in so many parts of 1, so that the file is readable


@dataclass(frozen=True)
class ScoredResults:
    """What is shown for some queries, with the scores that a floor is compared with."""

    offsets: Indices  # int64[Q+1]: query q shows the places ``offsets[q]:offsets[q+1]``
    score: Floats  # float64[R]: on the floor's scale
    relevant: Bools  # bool[R]
    unit: Indices  # int64[Q]: queries that vary together have the same number

    @property
    def query(self) -> Indices:
        """int64[R]: the query of each place."""
        return np.repeat(np.arange(len(self.unit)), np.diff(self.offsets))

    @property
    def best(self) -> Floats:
        """float64[Q]: the best score of each list; -inf for an empty one."""
        return _highest(self.score, self.query, len(self.unit))

    def recall_loss(self, floors: Floats) -> Floats:
        """float64[found, F]: the share of each list's relevant entries that each floor drops."""
        rows = np.flatnonzero(self.relevant)
        return recall_loss(self.query[rows], self.score[rows, None] < floors)


@dataclass(frozen=True)
class FloorBound:
    """A floor and what is promised of it."""

    floor: float | None  # -inf where none is needed for it, None where none keeps the promise
    bound: float  # what the mean loss, or the share of false answers, does not exceed, `CONFIDENCE`
    queries: int  # how many labelled queries it rests on
    units: int  # how many of them vary independently


def floor_for_recall_loss(lists: ScoredResults, share: float) -> FloorBound:
    """The highest floor that loses at most this share of the relevant entries in a list, in the mean.

    Student's one-sided bound on the mean loss over queries, one loss added as in conformal risk control; units
    vary as one (sums of squares over units). Raises ConfigError where too few lists hold a relevant entry.
    """
    queries = np.unique(lists.query[lists.relevant])  # those that show a relevant entry
    unit = np.unique(lists.unit[queries], return_inverse=True)[1]
    units = int(unit.max(initial=-1)) + 1
    if len(queries) < MIN_QUERIES_FOR_FLOOR or units < MIN_GROUPS:
        raise ConfigError(
            f"a floor needs {MIN_QUERIES_FOR_FLOOR} labelled queries of {MIN_GROUPS} groups with results; "
            f"here are {len(queries)} of {units} groups; label more queries"
        )
    floors = np.unique(np.quantile(lists.score, np.linspace(0, 1, CANDIDATE_FLOORS)))
    lost = lists.recall_loss(floors)
    reach = stdtrit(units - 1, CONFIDENCE) * spread(lost.T, unit).error
    bound = (lost.sum(axis=0) + 1) / (len(queries) + 1) + reach
    passed = np.flatnonzero(np.minimum.accumulate(bound <= share))
    last = passed[-1] if len(passed) else 0
    return FloorBound(float(floors[last]) if len(passed) else None, float(bound[last]), len(queries), units)


def floor_for_false_answers(lists: ScoredResults, share: float) -> FloorBound:
    """The lowest floor that answers at most this share of the questions without an answer, whose lists these are.

    Questions that vary together count as one, answered where any of them is. The floor lies just above an order
    statistic of their best scores, exact for any distribution (Learn then Test, Clopper and Pearson). Raises
    ConfigError where so few questions prove nothing, with the number that would.
    """
    unit = np.unique(lists.unit, return_inverse=True)[1]
    best = _highest(lists.best, unit, int(unit.max(initial=-1)) + 1)
    count, allowed = len(best), errors_allowed(len(best), share)
    if allowed < 0:
        needed = math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - share))
        apart = " that ask different things" if count < len(unit) else ""
        raise ConfigError(
            f"a floor for false={share:.0%} needs {needed} queries that nothing answers "
            f'("answerable": false), and there are {count}{apart}; mark {needed - count} more '
            "with steelyard judge"
        )
    falling = np.sort(best)[::-1]
    over = float(falling[allowed])
    floor = float(np.nextafter(over, np.inf)) if math.isfinite(over) else over
    bound = exact_interval(int((best > over).sum()), count, 2 * CONFIDENCE - 1)[1]
    return FloorBound(floor, bound, len(lists.unit), count)


def floor_for_all(bounds: Mapping[str, FloorBound]) -> float | None:
    """The highest floor that keeps the promises ``lost`` and ``false``, either or both; None where none does.

    What is lost grows with the floor and false answers fall, so the floor for those has to be the lower one.
    Of the floors that do, it is one with five digits, where there is one. -inf: no floor is needed.
    """
    least = bounds["false"].floor if "false" in bounds else -math.inf
    most = bounds["lost"].floor if "lost" in bounds else math.inf
    if least is None or most is None or least > most:
        return None
    target, towards = (most, math.floor) if math.isfinite(most) else (least, math.ceil)
    short = towards(target * DIGITS) / DIGITS if math.isfinite(target) else target
    return short if least <= short <= most else target


def _highest(values: Floats, group: Indices, groups: int) -> Floats:
    """float64[groups]: the largest value of each group; -inf for an empty one."""
    best = np.full(groups, -np.inf)
    np.maximum.at(best, group, values)
    return best


def errors_allowed(count: int, share: float) -> int:
    """The most errors among so many cases that still prove a rate of at most `share`; -1 if not even none does."""
    return int((bdtr(np.arange(count + 1), count, share) <= 1 - CONFIDENCE).sum()) - 1


def claim(name: str, share: float, bound: FloorBound, lists: ScoredResults, floor: float | None) -> dict[str, Any]:
    """One promise in numbers; what was measured is that of the floor that was chosen in the end."""
    own = -math.inf if bound.floor is None else bound.floor
    used = own if floor is None else floor
    answered = (lists.best >= used) & (np.diff(lists.offsets) > 0)  # what has no list is never answered
    measured = lists.recall_loss(np.array([used])).mean() if name == "lost" else answered.mean()
    counted = {**vars(bound), "floor": own if math.isfinite(own) else None}
    return {"name": name, "share": share, "measured": float(measured), **counted}


def describe_floor(floor: float | None, claims: Sequence[Mapping[str, Any]]) -> Message:
    """What the floor promises, or why there is none."""
    if floor is None and len(claims) > 1:
        lost, false = (one["floor"] for one in claims)
        return Message("floor_neither", {"least": false, "none": false is None, "most": lost, "any": lost is None})
    if floor is None:
        return Message("floor_none")
    facts: dict[str, Fact] = {"sure": CONFIDENCE}
    if not math.isfinite(floor):
        facts |= {name: claims[0][name] for name in ("measured", "share", "queries")}
        return Message("floor_not_needed", facts)
    for one in claims:
        facts |= {one["name"]: one["share"], f"{one['name']}_queries": one["queries"]}
    return Message("floor_kept", {**facts, "floor": number_text(floor), "both": len(claims) > 1})
