"""Finding a floor: below which score a search had better show nothing, measured on labelled queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import RecordedEmbedder
from steelyard.finish import Floor, without_floors
from steelyard.finish.rescored import FUSED
from steelyard.fusion import parse_strategy
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.choose.floor_bounds import (
    SURE,
    Bound,
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
from steelyard_eval.datasets import Dataset, as_dataset
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
"""What a floor is asked for: the share ``lost`` at most, the share ``false`` at most."""


@dataclass(frozen=True)
class FloorFound:
    """What was found."""

    config: SearchConfig  # the configuration with its floor, and without one where none keeps the promises
    least: float | None  # the floor; None where no promise is kept, or none is needed
    claims: list[ClaimRecord]  # the promises in numbers, as the provenance of `config` has them
    said: Said  # what the floor promises, or why there is none


def find_floor(
    source: Dataset | str | Path,
    contender: Given | None = None,
    *,
    lost: float | None = 0.1,
    false: float | None = None,
    on: str | None = None,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> FloorFound:
    """Find the highest floor that keeps its promises on the labelled queries.

    `source`: Dataset, str or Path: the data set, or its folder; `contender`: str or SearchConfig: what searches:
    a system, a strategy, or a weights file; by default what dataset.json names, else plain; `lost`: float or
    None: the share of the relevant entries of a list that may be lost in the mean, 0 to 1; None not to bound it;
    `false`: float or None: the share of questions without an answer that may be answered; it needs such queries
    (``"answerable": false``). None not to bound it; `on`: the sum that the floor is compared with; bm25 and
    vector on their own scales by default; embedder, workspace As for `tune`.
    Raises ConfigError: Where labels are too few for a promise, the floor's scale is not known for these lists, or
    what the floor reads would find candidates that the configuration ranks, too.
    """
    dataset = as_dataset(source)
    space = workspace or Workspace.open(dataset, embedder)
    promises = {name: share for name, share in (("lost", lost), ("false", false)) if share is not None}
    _check(promises)
    named = read_config(contender if contender is not None else dataset.system or "plain")
    row, _ = usable(space, Contender(named.label, named.config(Setting(None, space.model)), named.kind))
    config = row.config
    queries = [query for query in dataset.split(None) if query.id in dataset.qrels or not query.answerable]
    scale = _scale(on or str(FUSED))
    if missing := sorted(set(scale.needs) - set(space.usable(scale.needs))):
        raise ConfigError(
            f"{scale.on} needs {', '.join(missing)}, which {dataset.called} cannot supply; name another sum"
        )
    searched = reading(config, scale)
    added = searched.retrievers.keys() - config.retrievers.keys()
    if added and config.effective.ranks_candidates():
        raise ConfigError(
            f"{config.name} ranks whatever any retriever finds, so {', '.join(sorted(added))}, which the floor "
            "reads, would change its lists; name a sum over what it has with on, such as weighted_sum(1*cosine)"
        )
    strange = [] if isinstance(space.embedder, RecordedEmbedder) else strangers(queries)
    bare = replace(searched, finish=without_floors(config.finish))
    table = record(space, [*queries, *strange], [replace(bare, finish=(*bare.finish, scale))])
    answerable, unanswerable = ([q for q in queries if q.answerable is kind] for kind in (True, False))
    lists, nothing, other = (
        floor_lists(dataset, asked, table, bare, scale) for asked in (answerable, unanswerable, strange)
    )
    bounds: dict[str, Bound] = {}
    if "lost" in promises:
        bounds["lost"] = floor_for_lost(lists, promises["lost"])
    if "false" in promises:
        bounds["false"] = floor_for_false(nothing, promises["false"])
    least = floor_for_all(bounds)
    kept = least is not None and math.isfinite(least)
    chosen = replace(scale, least=-math.inf if least is None else least)
    tested = {"lost": lists, "false": nothing}
    claims = [claim(name, promises[name], bound, tested[name], least) for name, bound in bounds.items()]
    facts = origin(dataset, table.fingerprint, 0, now)
    measured = {"on": str(scale.on), "sure": SURE, "claims": claims, "date": facts["date"]}
    measured |= {"model": space.model, "dataset_sha256": dataset.sha256}
    provenance = {**bare.provenance, "floor": measured}
    final = replace(config, finish=bare.finish)
    if kept:
        final = replace(bare, finish=(*bare.finish, chosen), provenance=provenance)
    return FloorFound(final, chosen.least if kept else None, claims, said_of_floor(least, claims, other))


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
    floors = {
        name: find_floor(dataset, config, lost=asked.get("lost"), false=asked.get("false"), embedder=embedder)
        for name, config in configs.items()
    }
    said = list(dict.fromkeys(say(floor.said) for floor in floors.values()))
    kept: dict[str, Any] = {name: floor.config for name, floor in floors.items()}
    return replace(result, **kept), said


def strangers(queries: Sequence[Query]) -> list[Query]:
    """Made questions about something else, each asked where one of the queries is asked."""
    told = resources.files("steelyard_eval.choose").joinpath("foreign_questions.txt").read_text(encoding="utf-8")
    texts = told.splitlines()
    homes = [queries[i % len(queries)] for i in range(len(texts))] if queries else []
    asked = zip(homes, texts, strict=False)
    return [replace(home, id=f"strange {i}", text=text, intent="") for i, (home, text) in enumerate(asked)]


def floor_lists(
    dataset: Dataset, queries: Sequence[Query], table: SignalTable, config: SearchConfig, scale: Floor
) -> Lists:
    """What a configuration shows for some of the queries of a recording, on the floor's scale."""
    run = replay(table, config)
    number = {id_: i for i, id_ in enumerate(table.queries)}
    spans = [np.arange(*run.ranking.offsets[number[q.id] : number[q.id] + 2]) for q in queries]
    places = np.concatenate([np.zeros(0, np.int64), *spans])
    words = {entry.id: len(entry.text.split()) for entry in dataset.entries}
    return Lists(
        offsets=np.cumsum([0, *map(len, spans)]),
        score=scale.scores(run.table)[run.ranking.row[places]],
        relevant=run.ranked.relevant(dataset.qrels)[places],
        words=np.array([words[table.entries[e]] for e in run.entry[places].tolist()], dtype=np.int64),
        unit=unit_numbers(queries),
    )


def reading(config: SearchConfig, scale: Floor) -> SearchConfig:
    """The configuration with the retrievers that a floor reads; those that it lacks search for the floor alone."""
    deep = max([POOL, *(kept.depth for kept in config.retrievers.values() if kept.depth is not None)])
    more = {name: RetrieverConfig(depth=deep) for name in sorted(scale.needs & RETRIEVER_KINDS.keys())}
    return replace(config, retrievers=more | dict(config.retrievers))


def promises_of(text: str) -> dict[str, float]:
    """Read promises as they are written for commands.

    >>> promises_of("lost=10%, false=0.05")
    {'lost': 0.1, 'false': 0.05}
    """
    promises: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (word.strip() for word in part.partition("="))
        if name not in ("lost", "false"):
            raise ConfigError(f"a floor can promise lost or false, not {shown(name)}; write lost=10%")
        promises[name] = share_of(share)
    _check(promises)
    return promises


def share_of(text: str) -> float:
    """A share as it is written, 10% or 0.1; ConfigError for anything else."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ConfigError(f"{shown(text)} is no share; write 10% or 0.1") from None


def _check(promises: Promises) -> None:
    for name, share in promises.items():
        if not 0 < share < 1:
            raise ConfigError(
                f"{name} is {shown(share)}; a floor can promise a share between 0 and 1, such as 0.1"
            )
    if not promises:
        raise ConfigError("a floor has to promise something; name lost=10%, or false=10%")


def _scale(on: str) -> Floor:
    scale = parse_strategy(on)
    if not scale.absolute:
        raise ConfigError(
            f"a floor on {shown(on, 200)} would mean nothing, because its scores depend on what else was found; "
            f"name a sum of signals with normalize=theoretical or none, as in {FUSED}"
        )
    return Floor(0.0, on=scale)
