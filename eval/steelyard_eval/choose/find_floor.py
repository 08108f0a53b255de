"""Finding a floor: below which score a search had better show nothing, measured on labelled queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Floor, without_floors
from steelyard.finish.rescored import FUSED
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.choose.floor_bounds import (
    SURE,
    ClaimRecord,
    Lists,
    claim,
    floor_for_all,
    floor_for_false,
    floor_for_lost,
    said_of_floor,
)
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import Contender, Given, read_config, usable
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.recording.record import origin, record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ChosenT = TypeVar("ChosenT", bound="DataclassInstance")
POOL = 100  # how deep a retriever searches that the floor reads and the configuration does not have
Promises = Mapping[str, float]
"""What a floor is asked for: the share ``lost`` at most, the share ``false`` at most, either or both."""


@dataclass(frozen=True)
class FloorFound:
    """What was found."""

    config: SearchConfig  # the configuration with its floor, and without one where none keeps the promises
    least: float | None  # the floor; None where no promise is kept, or none is needed
    claims: list[ClaimRecord]  # the promises in numbers, as the provenance of `config` has them
    said: Said  # what the floor promises, or why there is none


def floored(
    result: ChosenT, dataset: Dataset, promises: str | None, embedder: str = "auto"
) -> tuple[ChosenT, list[str]]:
    """A result whose `config` and `attempt` have floors that keep these promises, and what they promise.

    `promises` is as `promises_of` reads it; without any the result is as it was.
    """
    if promises is None:
        return result, []
    asked = promises_of(promises)
    configs = {name: config for name in ("config", "attempt") if (config := getattr(result, name)) is not None}
    floors = {name: find_floor(dataset, config, asked, embedder=embedder) for name, config in configs.items()}
    kept: dict[str, Any] = {name: floor.config for name, floor in floors.items()}
    return replace(result, **kept), list(dict.fromkeys(say(floor.said) for floor in floors.values()))


def promises_of(text: str) -> dict[str, float]:
    """Read promises as they are written for commands; ConfigError for what is none.

    >>> promises_of("lost=10%, false=0.05")
    {'lost': 0.1, 'false': 0.05}
    """
    promises: dict[str, float] = {}
    for part in text.split(","):
        name, _, written = (word.strip() for word in part.partition("="))
        if name not in ("lost", "false"):
            raise ConfigError(f"a floor can promise lost or false, not {shown(name)}; write lost=10%")
        try:
            promises[name] = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
        except ValueError:
            raise ConfigError(f"{shown(written)} is no share; write 10% or 0.1") from None
        if not 0 < promises[name] < 1:
            raise ConfigError(
                f"{name} is {shown(promises[name])}; a floor can promise a share between 0 and 1, such as 0.1"
            )
    return promises


def find_floor(
    dataset: Dataset,
    contender: Given,
    promises: Promises,
    *,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> FloorFound:
    """Find the highest floor on the fused score that keeps its promises on the labelled queries.

    Raises ConfigError where labels are too few for a promise, for false ones of queries that are marked as
    ``"answerable": false``, where the floor's scale is not known for these lists, or where what the floor reads
    would find candidates that the configuration ranks, too.
    """
    space = workspace or Workspace.open(dataset, embedder)
    named = read_config(contender)
    row, _ = usable(space, Contender(named.label, named.config(Setting(None, space.model)), named.kind))
    config, scale = row.config, Floor(0.0, on=FUSED)
    if missing := sorted(set(scale.needs) - set(space.usable(scale.needs))):
        raise ConfigError(f"{scale.on} needs {', '.join(missing)}, which {dataset.called} cannot supply")
    searched = reading(config, scale)
    added = searched.retrievers.keys() - config.retrievers.keys()
    if added and config.effective.ranks_candidates():
        raise ConfigError(
            f"{config.name} ranks whatever any retriever finds, so {', '.join(sorted(added))}, which the floor "
            "reads, would change its lists; leave the floor out"
        )
    queries = [query for query in dataset.split(None) if query.id in dataset.qrels or not query.answerable]
    bare = replace(searched, finish=without_floors(config.finish))
    table = record(space, queries, [replace(bare, finish=(*bare.finish, scale))])
    tested, bounds = {}, {}
    for name, find, kind in (("lost", floor_for_lost, True), ("false", floor_for_false, False)):
        if name in promises:
            asked = [query for query in queries if query.answerable is kind]
            tested[name] = floor_lists(dataset, asked, table, bare, scale)
            bounds[name] = find(tested[name], promises[name])
    least = floor_for_all(bounds)
    claims = [claim(name, promises[name], bound, tested[name], least) for name, bound in bounds.items()]
    said = said_of_floor(least, claims)
    if least is None or not math.isfinite(least):
        return FloorFound(replace(config, finish=bare.finish), None, claims, said)
    facts = origin(dataset, table.fingerprint, 0, now)
    measured = {"on": str(scale.on), "sure": SURE, "claims": claims, "date": facts["date"]}
    measured |= {"model": space.model, "dataset_sha256": dataset.sha256}
    finish = (*bare.finish, replace(scale, least=least))
    final = replace(bare, finish=finish, provenance={**bare.provenance, "floor": measured})
    return FloorFound(final, least, claims, said)


def reading(config: SearchConfig, scale: Floor) -> SearchConfig:
    """The configuration with the retrievers that a floor reads; those that it lacks search for the floor alone."""
    deep = max([POOL, *(kept.depth for kept in config.retrievers.values() if kept.depth is not None)])
    more = {name: RetrieverConfig(depth=deep) for name in sorted(scale.needs & RETRIEVER_KINDS.keys())}
    return replace(config, retrievers=more | dict(config.retrievers))


def floor_lists(
    dataset: Dataset, queries: Sequence[Query], table: SignalTable, config: SearchConfig, scale: Floor
) -> Lists:
    """What a configuration shows for some of the queries of a recording, on the floor's scale."""
    run = replay(table, config)
    number = {id_: i for i, id_ in enumerate(table.queries)}
    spans = [np.arange(*run.ranking.offsets[number[q.id] : number[q.id] + 2]) for q in queries]
    places = np.concatenate([np.zeros(0, np.int64), *spans])
    return Lists(
        offsets=np.cumsum([0, *map(len, spans)]),
        score=scale.scores(run.table)[run.ranking.row[places]],
        relevant=run.ranked.relevant(dataset.qrels)[places],
        unit=unit_numbers(queries),
    )
