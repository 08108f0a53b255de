"""Finding a floor: below which score a search had better show nothing, measured on labelled queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Floor
from steelyard.finish.floor import FUSED
from steelyard.grammar import number_text
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS, RetrieverConfig
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.renderers import drawn
from steelyard_eval.common.results import Result, frame_html
from steelyard_eval.compare.contenders import Given, Setting
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.decide.floors import (
    SURE,
    Bound,
    Lists,
    exact_interval,
    floor_for_false,
    floor_for_lost,
)
from steelyard_eval.decide.provenance import origin
from steelyard_eval.explain.configs import left_of, read_config
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

POOL = 100
"""How deep a retriever searches that the floor reads and the configuration does not have."""
Promises = Mapping[str, float]
"""What a floor is asked for: the share ``lost`` at most, the share ``false`` at most."""


@dataclass(frozen=True, repr=False)
class FloorFound(Result):
    """What was found: `record` is the JSON document, `config` the configuration with its floor."""

    record: Mapping[str, Any]
    config: SearchConfig

    def to_json(self) -> dict[str, Any]:
        """The document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row for each kind of question: how many, answered and silenced, hits and words that are left."""
        import pandas as pd

        return pd.DataFrame(self.record["questions"])

    def __repr__(self) -> str:
        return f"FloorFound({self.record['sentence']})"

    def _repr_html_(self) -> str:
        import html

        return f"<p>{html.escape(self.record['sentence'])}</p>{frame_html(self.to_frame())}"

    def plot(self) -> Figure:
        """Plot what each floor would lose, answer and show."""
        return drawn("floor", self.record)

    def weights(self, path: str | Path) -> None:
        """Write the weights file of the configuration with its floor."""
        self.config.save(path)


def find_floor(
    source: Dataset | str | Path,
    contender: Given = "plain",
    *,
    lost: float | None = 0.1,
    false: float | None = None,
    on: str = FUSED,
    split: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
    workspace: Workspace | None = None,
    now: Callable[[], float] = time.time,
) -> FloorFound:
    """Find the highest floor that keeps its promises on the labelled queries.

    Parameters
    ----------
    source : Dataset, str or Path
        The data set, or its folder.
    contender : str or SearchConfig
        What searches: a system, a strategy, or a weights file.
    lost : float or None
        The share of the relevant entries of a list that may be lost in the mean, 0 to 1; None not to bound it.
    false : float or None
        The share of questions without an answer that may be answered; it needs such queries
        (``"answerable": false``). None not to bound it.
    on : str
        The sum that the floor is compared with.
    split, limit, embedder, workspace
        As for `tune`.

    Raises
    ------
    ConfigError
        Where labels are too few for a promise, or the floor's scale is not known for these lists.
    """
    dataset = as_dataset(source)
    space = workspace or Workspace.open(dataset, embedder)
    promises = {name: share for name, share in (("lost", lost), ("false", false)) if share is not None}
    _check(promises)
    config = left_of(space, read_config(contender).config(Setting(limit, space.model)))
    queries = [query for query in dataset.split(split) if query.id in dataset.qrels or not query.answerable]
    scale = _scale(on)
    if missing := sorted(set(scale.needs) - set(space.usable(scale.needs))):
        raise ConfigError(
            f"{scale.on} needs {', '.join(missing)}, which {dataset.name} cannot supply; name another sum"
        )
    searched = reading(config, scale)
    table = record(space, queries, [searched])
    return bounded(dataset, queries, table, searched, scale, promises, now)


def bounded(
    dataset: Dataset,
    queries: Sequence[Query],
    table: SignalTable,
    config: SearchConfig,
    scale: Floor,
    promises: Promises,
    now: Callable[[], float],
) -> FloorFound:
    """The floor of a recording of these queries, in its configuration, with the document."""
    bare = without_floor(config)
    asked, unanswerable = ([q for q in queries if q.answerable is kind] for kind in (True, False))
    lists = floor_lists(dataset, asked, table, bare, scale)
    nothing = floor_lists(dataset, unanswerable, table, bare, scale)
    found: dict[str, Bound] = {}
    if "lost" in promises:
        found["lost"] = floor_for_lost(lists, promises["lost"])
    if "false" in promises:
        found["false"] = floor_for_false(nothing.best, promises["false"])
    least = max(bound.floor for bound in found.values())
    chosen = replace(scale, least=_rounded(least))
    claims = [_claim(name, promises[name], bound, lists, chosen.least) for name, bound in found.items()]
    facts = origin(dataset, table.fingerprint, 0, now)
    provenance = {**bare.provenance, "floor": {"on": str(scale.on), "sure": SURE, "claims": claims, **facts}}
    kept = math.isfinite(least)
    final = replace(bare, finish=(*bare.finish, chosen), provenance=provenance) if kept else bare
    return FloorFound(
        {
            "kind": "floor",
            "label": config.name,
            "strategy": str(config.effective),
            "floor": chosen.least if kept else None,
            "on": str(scale.on),
            "sure": SURE,
            "claims": claims,
            "sentence": _sentence(chosen.least, kept, claims),
            "questions": _questions(lists, nothing, chosen.least),
            "curve": _curve(lists, nothing),
            "dataset": facts,
        },
        final,
    )


def floor_lists(
    dataset: Dataset, queries: Sequence[Query], table: SignalTable, config: SearchConfig, scale: Floor
) -> Lists:
    """What a configuration shows for some of the queries of a recording, on the floor's scale."""
    run = replay(table, config)
    number = {id_: at for at, id_ in enumerate(table.queries)}
    places = [np.arange(*run.ranking.offsets[number[q.id] : number[q.id] + 2]) for q in queries]
    rows = run.ranking.row[np.concatenate([np.zeros(0, np.int64), *places])]
    entry = run.table.entry[rows]
    words = _words(dataset)
    query = np.repeat(np.arange(len(queries)), [len(own) for own in places])
    relevant = [
        dataset.qrels.get(queries[q].id, {}).get(table.entries[e], 0) >= 1
        for q, e in zip(query.tolist(), entry.tolist(), strict=True)
    ]
    return Lists(
        offsets=np.cumsum([0, *map(len, places)]),
        score=scale.scores(run.table)[rows],
        relevant=np.array(relevant, dtype=bool),
        words=np.array([words[table.entries[e]] for e in entry.tolist()], dtype=np.int64),
        unit=unit_numbers(queries),
    )


def reading(config: SearchConfig, scale: Floor) -> SearchConfig:
    """The configuration with the retrievers that a floor reads; those that it lacks search for the floor alone."""
    deep = max([POOL, *(own.depth for own in config.retrievers.values() if own.depth is not None)])
    more = {name: RetrieverConfig(depth=deep) for name in sorted(scale.needs & RETRIEVER_KINDS.keys())}
    return replace(config, retrievers=more | dict(config.retrievers))


def without_floor(config: SearchConfig) -> SearchConfig:
    """The configuration without its floors."""
    return replace(config, finish=tuple(stage for stage in config.finish if not isinstance(stage, Floor)))


def _check(promises: Promises) -> None:
    for name, share in promises.items():
        if not 0 < share < 1:
            raise ConfigError(
                f"{name} is {shown(share)}; a floor can promise a share between 0 and 1, such as 0.1"
            )
    if not promises:
        raise ConfigError("a floor has to promise something; name lost=10%, or false=10%")


def _scale(on: str) -> Floor:
    try:
        return Floor.of(0.0, on)
    except ValueError:
        raise ConfigError(
            f"a floor on {shown(on, 200)} would mean nothing, because its scores depend on what else was found; "
            f"name a sum of signals with normalize=theoretical or none, as in {FUSED}"
        ) from None


def _words(dataset: Dataset) -> dict[str, int]:
    return {entry.id: len(entry.text.split()) for entry in dataset.entries}


def _rounded(floor: float) -> float:
    """Five digits, downwards, so that the file is readable and no entry is lost by rounding."""
    return math.floor(floor * 1e5) / 1e5 if math.isfinite(floor) else floor


def _claim(name: str, share: float, bound: Bound, lists: Lists, floor: float) -> dict[str, Any]:
    """One promise in numbers; the measured loss is that of the floor that was chosen in the end."""
    found = lists.lost(np.array([floor]))
    measured = float(found.mean()) if name == "lost" and len(found) else bound.measured
    return {
        "name": name,
        "share": share,
        "measured": measured,
        "bound": bound.bound,
        "queries": bound.queries,
        "units": bound.units,
        "floor": bound.floor if math.isfinite(bound.floor) else None,
    }


def _sentence(floor: float, kept: bool, claims: Sequence[Mapping[str, Any]]) -> str:
    if not kept:
        return "No floor keeps that promise by these labels: show everything, as now."
    words = {
        "lost": "loses at most {share:.0%} of the relevant entries, {sure:.0%} sure, from your {queries} labels",
        "false": "answers at most {share:.0%} of the questions without an answer, {sure:.0%} sure, from {queries}",
    }
    said = "; ".join(words[claim["name"]].format(sure=SURE, **claim) for claim in claims)
    return (
        f"The floor {number_text(floor)} {said}. Questions about something else get almost nothing; a question "
        "that your memory merely cannot answer is still answered."
    )


def _questions(lists: Lists, nothing: Lists, floor: float) -> list[dict[str, Any]]:
    """By kind of question: how many, how many are answered, and the shares of hits and of words that are left."""
    kinds = {"answerable": lists, "their lists without what is relevant": _irrelevant(lists), "no answer": nothing}
    return [_row(name, own, floor) for name, own in kinds.items() if len(own.unit)]


def _row(name: str, lists: Lists, floor: float) -> dict[str, Any]:
    count, answered = len(lists.unit), int((lists.best >= floor).sum())
    low, high = exact_interval(answered, count)
    return {
        "questions": name,
        "count": count,
        "answered": answered / count,
        "low": low,
        "high": high,
        "hits": float((lists.score >= floor).sum() / count),
        "words": lists.words_shown(floor),
    }


def _irrelevant(lists: Lists) -> Lists:
    """The lists without their relevant entries."""
    keep = ~lists.relevant
    offsets = np.concatenate([[0], np.cumsum(keep)])[lists.offsets]
    return replace(
        lists, offsets=offsets, score=lists.score[keep], relevant=lists.relevant[keep], words=lists.words[keep]
    )


def _curve(lists: Lists, nothing: Lists) -> list[dict[str, float]]:
    """For 41 floors: what is lost, and the shares of lists, words and unanswerable questions that are left."""
    floors = np.quantile(lists.score, np.linspace(0, 1, 41)) if len(lists.score) else np.zeros(0)
    lost = lists.lost(floors).mean(axis=0) if len(lists.found()) else np.zeros(len(floors))
    return [
        {
            "floor": float(floor),
            "lost": float(lost[at]),
            "answered": float((lists.best >= floor).mean()),
            "words": lists.words_shown(float(floor)),
            **({"false": float((nothing.best >= floor).mean())} if len(nothing.unit) else {}),
        }
        for at, floor in enumerate(floors.tolist())
    ]
