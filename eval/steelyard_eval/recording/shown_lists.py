"""The first places of ranked lists, with scores and what each signal adds, as a document keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.fields import format_time
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import compile_plan
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.replay import Replay
from steelyard_eval.result.structs import DataFacts, Listed, QueryRow, replace

PLACES = 10  # the number of places of each list that a document keeps
MOST = 60_000  # the number of places over all lists; contenders beyond it are left out
HEADLINE = 120  # the characters that are shown of an entry
SHORT = 30  # titles up to this length are followed by the text


@dataclass(frozen=True)
class ShownLists:
    """The lists of one contender.

    `signals` names the T terms of its score; `scores` is float64[R] and `parts` float64[R, T], over the places of
    `ranked`. Lists of other engines have neither.
    """

    ranked: Ranked
    signals: tuple[str, ...] = ()
    scores: Floats | None = None
    parts: Floats | None = None

    def listed(self, queries: Sequence[str]) -> dict[str, Listed]:
        """The first places for these queries, by query."""
        spans = dict(zip(self.ranked.queries, pairwise(self.ranked.offsets.tolist()), strict=True))
        return {id_: self._places(*spans[id_]) for id_ in queries if id_ in spans}

    def _places(self, begin: int, end: int) -> Listed:
        places = slice(begin, min(end, begin + PLACES))
        entries = [self.ranked.entries[i] for i in self.ranked.entry[places].tolist()]
        if self.scores is None or self.parts is None:
            return Listed(entries)
        parts = self.parts[places]
        used = np.flatnonzero(parts.any(axis=0)).tolist()
        return Listed(
            entries,
            [_short(value) for value in self.scores[places].tolist()],
            {self.signals[i]: [_short(value) for value in parts[:, i].tolist()] for i in used},
        )


class DatasetRecord(TypedDict):
    """The data set, with its hash, sizes and clock; `path` is None for one that is in memory alone."""

    name: str
    path: str | None
    description: str | None
    licence: str | None
    sha256: str | None
    entries: int | None
    set_apart: int | None
    as_of: str | None


def described(dataset: Dataset) -> DatasetRecord:
    """Name, licence, hash, sizes and clock; `path` is None for a data set that is in memory alone."""
    return {
        "name": dataset.name,
        "path": None if dataset.in_memory else str(dataset.path),
        "description": dataset.description,
        "licence": dataset.licence,
        "sha256": dataset.sha256,
        "entries": len(dataset.entries),
        "set_apart": dataset.set_apart,
        "as_of": format_time(dataset.as_of),
    }


def lists_of(run: Replay, config: SearchConfig) -> ShownLists:
    """The lists of a configuration with what each term of its strategy adds to the scores.

    The terms of an entry that a later stage appended or scored again need not add up to its score.
    """
    signals, parts = compile_plan(run.table, config.effective).contributions(run.ranking.row)
    return ShownLists(run.ranked, signals, run.ranking.score, parts)


def rows_by_query(
    dataset: Dataset,
    queries: Sequence[Query],
    values: Mapping[str, Floats],
    contenders: Iterable[tuple[str, Callable[[], ShownLists]]],
) -> tuple[list[QueryRow], dict[str, str]]:
    """A row a query, with the values (float64[Q] each) and lists of contenders, the most important first.

    The second is the opening of every entry that is in a list or judged. Contenders that would make more than
    `MOST` places are left out.
    """
    ids = [query.id for query in queries]
    lists: dict[str, dict[str, Listed]] = {}
    for label, made in contenders:
        if (len(lists) + 1) * len(ids) * PLACES > MOST and len(lists) >= 2:
            break
        lists[label] = made().listed(ids)
    rows = [
        QueryRow(
            query.id, query.text, query.category, query.group or None,
            {label: float(column[i]) for label, column in values.items()},
            {label: found[query.id] for label, found in lists.items() if query.id in found},
            dict(dataset.qrels.get(query.id, {})),
        )
        for i, query in enumerate(queries)
    ]  # fmt: skip
    named = {
        id_ for row in rows for own in (*(one.entries for one in row.lists.values()), row.grades) for id_ in own
    }
    return rows, {entry.id: opening(entry) for entry in dataset.entries if entry.id in named}


def facts_of(dataset: Dataset, queries: int, judged: int) -> DataFacts:
    """Name, licence, hash, sizes and clock; `path` is None for a data set that is in memory alone."""
    return replace(DataFacts(**described(dataset)), queries=queries, judged=judged)


def headline(entry: Entry | None) -> str:
    """The title of an entry, else the start of its text."""
    return "" if entry is None else (entry.title or entry.text[:HEADLINE])


def opening(entry: Entry) -> str:
    """The title of an entry and, after a short one, which may be no more than a speaker, the start of its text."""
    if len(entry.title) > SHORT:
        return entry.title[:HEADLINE]
    text = " ".join(f"{entry.title}: {entry.text}".split()) if entry.title else entry.text
    return text[:HEADLINE]


def ordered(means: Mapping[str, float], first: Sequence[str]) -> list[str]:
    """Labels in the order of importance: those of `first`, then by mean, best first."""
    rest = sorted(means, key=lambda label: (-means[label], label))
    return list(dict.fromkeys([*first, *rest]))


def _short(value: float) -> float:
    return float(f"{value:.5g}")
