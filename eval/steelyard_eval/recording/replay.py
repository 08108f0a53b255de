"""Replays a recording under a configuration, by the engine's own fuse and finish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Ints
from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.config.search_config import SearchConfig
from steelyard.finish import Ranking
from steelyard.live.identity import agree
from steelyard.live.search import rank_table
from steelyard.retrievers import DEPENDENT, EMBEDDING
from steelyard.table.facts import Facts, Labels, TagSets
from steelyard.table.signal_table import LISTS, SignalTable
from steelyard_eval.datasets import CLASSIFIED, GIVEN, Dataset
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.disk import load


@dataclass(frozen=True)
class Replay:
    """Ranked lists of one configuration over a recording.

    `entry` (int32[R]) indexes the recording's ids; `embedded` (bool[Q]) is true for the queries that live
    search would have embedded.
    """

    table: SignalTable
    ranking: Ranking
    entry: Ints
    embedded: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def ranked(self) -> Ranked:
        """The ranked lists alone."""
        return Ranked(self.table.queries, self.table.entries, self.ranking.offsets, self.entry)

    def metrics(self, judgments: Judgments, measures: Iterable[Measure]) -> dict[Measure, Floats]:
        """Compute every measure for every query; float64[Q] each."""
        return evaluate(self.ranking.offsets, self.entry, judgments, measures)


def replay(table: SignalTable, config: SearchConfig) -> Replay:
    """Fuse and finish a recording under a configuration.

    Raises ConfigError when the configuration differs from what the recording has fixed.
    """
    agree(config, table.fingerprint)
    masked, ranking = rank_table(table, config, config.effective)
    return Replay(masked, ranking, table.entry[ranking.row], embedded(masked, config))


def embedded(masked: SignalTable, config: SearchConfig) -> Bools:
    """bool[Q]: the queries that live search would embed, over a recording at the configuration's depths."""
    mask = np.zeros(len(masked.queries), dtype=bool)
    for queries in _embedding(masked, config):
        mask |= queries
    return mask


def may_embed(masked: SignalTable, config: SearchConfig) -> bool:
    """Whether there are queries that live search would embed, be they none of these."""
    return any(True for _ in _embedding(masked, config))


def _embedding(masked: SignalTable, config: SearchConfig) -> Iterator[Bools]:
    """bool[Q] for each signal that reads a query's vector: the queries that need it."""
    for name, queries in config.effective.needs(masked, tuple(config.retrievers)).items():
        before = config.before(name) if name in DEPENDENT and name in config.retrievers else ()
        if EMBEDDING & {name, *before}:
            yield queries


def open_recording(folder: Path, dataset: Dataset) -> SignalTable:
    """Open a recording of this data set; DataError when it is of another one, or broken."""
    table = load(folder)
    if table.fingerprint.get("corpus") != dataset.sha256:
        raise DataError(
            f"recording {shown(str(folder))} is of a data set with hash {shown(table.fingerprint.get('corpus'))}, "
            f"{dataset.called} has {dataset.sha256!r}; record again"
        )
    intents = intents_of(dataset, table)
    if intents and dataset.intents not in (None, intents):
        raise ConfigError(
            f"the intents of recording {shown(str(folder))} are {intents}, not {dataset.intents}; record again "
            f"with --intents {dataset.intents}"
        )
    return table


def intents_of(dataset: Dataset, table: SignalTable | None = None) -> str | None:
    """Where the intents of queries, or of a recording, are from; None where the data set names none to choose."""
    if not any(query.intent for query in dataset.queries):
        return None
    return dataset.intents or CLASSIFIED if table is None else str(table.fingerprint.get("intents", GIVEN))


def recorded_lists(table: SignalTable | None) -> tuple[str, ...] | None:
    """Return the names of the lists of other engines in a recording; None for one of our own retrievers."""
    lists = table.fingerprint.get(LISTS) if table is not None else None
    return tuple(sorted(lists)) if isinstance(lists, dict) else None


def only(table: SignalTable, queries: Sequence[str]) -> SignalTable:
    """Select the table of these queries, in this order; ConfigError when some were not recorded."""
    if tuple(queries) == table.queries:
        return table
    known = {query: i for i, query in enumerate(table.queries)}
    if missing := [query for query in queries if query not in known]:
        raise ConfigError(
            f"{len(missing)} queries are not in the recording, such as {shown(missing[0])}"
            f"{nearest(missing[0], known)}; record again with --split all"
        )
    chosen = np.array([known[query] for query in queries], dtype=np.int64)
    sizes = np.diff(table.offsets)[chosen]
    rows = _spans(table.offsets, chosen)
    return replace(
        table,
        queries=tuple(queries),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64),
        entry=table.entry[rows],
        columns={name: values[rows] for name, values in table.columns.items()},
        positions={name: values[rows] for name, values in table.positions.items()},
        asked=_facts(table.asked, chosen),
    )


def _spans(offsets: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the chosen spans, one span after the other."""
    parts = [np.arange(offsets[i], offsets[i + 1]) for i in chosen.tolist()]
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)


def _facts(facts: Facts, chosen: NDArray[np.int64]) -> Facts:
    tags = facts.tags
    sizes = np.diff(tags.offsets)[chosen]
    return Facts(
        {name: values[chosen] for name, values in facts.numbers.items()},
        {name: Labels(labels.codes[chosen], labels.words) for name, labels in facts.labels.items()},
        TagSets(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64),
            tags.codes[_spans(tags.offsets, chosen)],
        ),
    )


def reaches(table: SignalTable, config: SearchConfig) -> bool:
    """Whether every list was recorded to the depth that the configuration searches."""
    deepest = table.fingerprint.get("max_depth", {})
    known = deepest if isinstance(deepest, dict) else {}
    return all(depth is None or depth <= known.get(name, depth) for name, depth in config.depths.items())
