"""Opens existing recordings for a data set, and selects some of their queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.config.search_config import SearchConfig
from steelyard.table.facts import Facts, Labels, TagSets
from steelyard.table.signal_table import LISTS, SignalTable
from steelyard_eval.datasets import CLASSIFIED, GIVEN, Dataset
from steelyard_eval.recording.disk import load


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
