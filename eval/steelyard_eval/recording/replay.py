"""Replays a recording under a configuration, by the engine's own fuse and finish, and keeps the first places."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.base.fields import format_time
from steelyard.config import SearchConfig
from steelyard.finish import Ranking
from steelyard.fusion import Plan, compile_plan
from steelyard.live.search import rank_table
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers import DEPENDENT, EMBEDDING
from steelyard.table.signal_table import LISTS, Facts, Labels, SignalTable, TagSets
from steelyard_eval.datasets import CLASSIFIED, GIVEN, Dataset
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate
from steelyard_eval.recording.disk import load
from steelyard_eval.recording.provenance import agree
from steelyard_eval.result.structs import DataFacts, Listed, QueryRow


@dataclass(frozen=True)
class ReplayedRun:
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


def replay(table: SignalTable, config: SearchConfig) -> ReplayedRun:
    """Fuse and finish a recording under a configuration.

    Raises ConfigError when the configuration differs from what the recording has fixed.
    """
    agree(config, table.fingerprint)
    masked, ranking, _ = rank_table(table, config, config.effective)
    return ReplayedRun(masked, ranking, table.entry[ranking.row], embedded(masked, config))


def embedded(masked: SignalTable, config: SearchConfig) -> Bools:
    """bool[Q]: the queries that live search would embed, over a recording at the configuration's depths."""
    none = np.zeros(len(masked.queries), dtype=bool)
    mask: Bools = np.logical_or.reduce([none, *_embedding(masked, config)])
    return mask


def may_embed(masked: SignalTable, config: SearchConfig) -> bool:
    """Whether there are queries that live search would embed, be they none of these."""
    return bool([*_embedding(masked, config)])


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
            f"recording {quote(str(folder))} is of the data set {quote(table.fingerprint.get('corpus'))}, "
            f"{dataset.called} has {dataset.sha256!r}; record again"
        )
    intents = intents_of(dataset, table)
    if intents and dataset.intents not in (None, intents):
        raise ConfigError(
            f"the intents of recording {quote(str(folder))} are {intents}, not {dataset.intents}; record again "
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
            f"{len(missing)} queries are not in the recording, such as {quote(missing[0])}"
            f"{nearest(missing[0], known)}; record again with --split all"
        )
    chosen = np.array([known[query] for query in queries], dtype=np.int64)
    offsets, rows = _spans(table.offsets, chosen)
    return replace(
        table,
        queries=tuple(queries),
        offsets=offsets,
        entry=table.entry[rows],
        columns={name: values[rows] for name, values in table.columns.items()},
        positions={name: values[rows] for name, values in table.positions.items()},
        query_facts=_facts(table.query_facts, chosen),
    )


def _spans(offsets: Indices, chosen: Indices) -> tuple[Indices, Indices]:
    """The offsets of the chosen spans, put one after the other, and the places in them."""
    parts = [np.arange(offsets[i], offsets[i + 1]) for i in chosen.tolist()]
    places = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
    return np.cumsum([0, *map(len, parts)]).astype(np.int64), places


def _facts(facts: Facts, chosen: Indices) -> Facts:
    offsets, places = _spans(facts.tags.offsets, chosen)
    return Facts(
        {name: values[chosen] for name, values in facts.numbers.items()},
        {name: Labels(labels.codes[chosen], labels.words) for name, labels in facts.labels.items()},
        TagSets(offsets, facts.tags.codes[places]),
    )


def reaches(table: SignalTable, config: SearchConfig) -> bool:
    """Whether every list was recorded to the depth that the configuration searches."""
    deepest = table.fingerprint.get("max_depth", {})
    known = deepest if isinstance(deepest, dict) else {}
    return all(depth is None or depth <= known.get(name, depth) for name, depth in config.depths.items())


PLACES = 10  # the number of places of each list that a document keeps
MAX_PLACES = 60_000  # the number of places over all lists; contenders beyond it are left out
HEADLINE = 120  # the characters that are shown of an entry
MAX_SHORT_TITLE_CHARS = 30  # titles up to this length are followed by the text


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


def described(dataset: Dataset) -> dict[str, Any]:
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


def contributions(plan: Plan, rows: Indices) -> tuple[tuple[str, ...], Floats]:
    """What each term adds to the scores of the rows int64[R], factors included: names, and float64[R, T].

    A term is 0 for rows of branches that lack it. The terms of a row add up to its score, up to rounding.
    A nested fusion whose score is taken as it is counts as its own terms.
    """
    names: dict[str, Floats] = {}
    for branch in plan.branches:
        places = np.flatnonzero(branch.ranked[rows])
        chosen = rows[places]
        factor = 1.0 if branch.factor is None else branch.factor[chosen]
        for weight, column in zip(branch.weights, branch.columns, strict=True):
            terms: Iterable[tuple[str, Floats]] = [(column.label, column.values[chosen])]
            if (inner := column.inner) and np.array_equal(column.values[chosen], inner.scores()[chosen]):
                within, parts = contributions(inner, chosen)
                terms = zip(within, parts.T, strict=True)
            for name, values in terms:
                np.add.at(names.setdefault(name, np.zeros(len(rows))), places, weight * values * factor)
    return tuple(names), np.stack(list(names.values()), axis=1) if names else np.zeros((len(rows), 0))


def lists_of(run: ReplayedRun, config: SearchConfig) -> ShownLists:
    """The lists of a configuration with what each term of its strategy adds to the scores.

    The terms of an entry that a later stage appended or scored again need not add up to its score.
    """
    signals, parts = contributions(compile_plan(run.table, config.effective), run.ranking.row)
    return ShownLists(run.ranked, signals, run.ranking.score, parts)


def rows_by_query(
    dataset: Dataset,
    queries: Sequence[Query],
    values: Mapping[str, Floats],
    contenders: Iterable[tuple[str, Callable[[], ShownLists]]],
) -> tuple[list[QueryRow], dict[str, str]]:
    """A row a query, with the values (float64[Q] each) and lists of contenders, the most important first.

    The second is the opening of every entry that is in a list or judged. Contenders that would make more than
    `MAX_PLACES` places are left out.
    """
    ids = [query.id for query in queries]
    lists: dict[str, dict[str, Listed]] = {}
    for label, made in contenders:
        if (len(lists) + 1) * len(ids) * PLACES > MAX_PLACES and len(lists) >= 2:
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
    """What documents say of a data set (`described`), and how many queries there are and are judged."""
    return DataFacts(**described(dataset), queries=queries, judged=judged)


def headline(entry: Entry | None) -> str:
    """The title of an entry, else the start of its text."""
    return "" if entry is None else (entry.title or entry.text[:HEADLINE])


def opening(entry: Entry) -> str:
    """The title of an entry and, after a short one, which may be no more than a speaker, the start of its text."""
    if len(entry.title) > MAX_SHORT_TITLE_CHARS:
        return entry.title[:HEADLINE]
    text = " ".join(f"{entry.title}: {entry.text}".split()) if entry.title else entry.text
    return text[:HEADLINE]


def ordered(means: Mapping[str, float], first: Sequence[str]) -> list[str]:
    """Labels in the order of importance: those of `first`, then by mean, best first."""
    return list(dict.fromkeys([*first, *sorted(means, key=lambda label: (-means[label], label))]))


def _short(value: float) -> float:
    return float(f"{value:.5g}")
