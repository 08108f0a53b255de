"""Contenders that have ranked lists only: TREC runs, tables, functions and endpoints.

Their lists are measured like any other. How they were made is not known, so there are no signals to explain, no
weights to tune, and no embedded queries to count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.base.errors import ConfigError, shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import written_as
from steelyard_eval.common.console import bar
from steelyard_eval.compare.python_searches import (
    HasScores,
    Limited,
    Opened,
    Search,
    Transformer,
    is_open,
    read_answer,
    read_id,
    read_score,
)
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.trec_runs import Scored, best_first, read_run
from steelyard_eval.result.structs import Fact, Said

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "query": ("qid", "query_id", "query"),  # results of PyTerrier have the text of the query in `query`
    "entry": ("entry", "doc_id", "docno", "object_id", "id"),
    "score": ("score",),
}
"""The names that the columns of a table of lists may have, such as those of PyTerrier and of ir_measures."""
EXAMPLES = 3
"""Ids that a notice names."""


@dataclass(frozen=True)
class AnsweredLists:
    """The answers of a contender: scored ids of every query, notices, and milliseconds where measured."""

    lists: list[list[Scored]]
    notices: list[Said]
    taken: list[float] | None = None

    def ranked(self, queries: Sequence[Query], limit: int, part: Sequence[Query] | None = None) -> Ranked:
        """The lists of the queries that were asked, or of a part of these, cut at a limit."""
        lists = dict(zip((query.id for query in queries), self.lists, strict=True))
        ids = [query.id for query in (queries if part is None else part)]
        return Ranked.of(ids, [[id_ for id_, _ in lists[query][:limit]] for query in ids])


@dataclass(frozen=True)
class ListContender:
    """A contender that has lists only.

    `kind` is run, frame, function or endpoint; `source` is where the lists come from; `ask` answers queries with
    lists of a given length that name the entries of a corpus; `queries` are those whose lists are there already,
    and `file` is the run that was read.
    """

    label: str
    kind: str
    source: str
    ask: Callable[[str, Sequence[Query], int, Sequence[Entry]], AnsweredLists]
    queries: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def word(self) -> str | None:
        """How a command names it; None for one that is known in Python alone."""
        return written_as(self.label, self.source) if self.kind in ("run", "endpoint") else None

    def answers(self, queries: Sequence[Query], limit: int, dataset: Dataset) -> AnsweredLists:
        """Return the lists of these queries; an entry that is in a list twice counts at its first place."""
        answers = self.ask(self.label, queries, limit, dataset.entries)
        lists = [_firsts(places) for places in answers.lists]
        repeated = sum(map(len, answers.lists)) - sum(map(len, lists))
        known, asked = {entry.id for entry in dataset.entries}, {query.id for query in dataset.queries}
        ids = dict.fromkeys(id_ for places in lists for id_, _ in places)
        notices = [*answers.notices]
        if odd := [id_ for id_ in ids if id_ not in known]:  # never relevant
            facts: dict[str, Fact] = {"label": self.label, "odd": len(odd), "ids": len(ids)}
            notices.append(Said("unknown_ids", facts | _named(odd)))
        if odd := [query for query in self.queries if query not in asked]:
            facts = {"label": self.label, "odd": len(odd), "queries": len(self.queries), "data": dataset.called}
            notices.append(Said("foreign_queries", facts | _named(odd)))
        if repeated:
            notices.append(Said("repeated", {"label": self.label, "places": repeated}))
        return AnsweredLists(lists, notices, answers.taken)


def _firsts(own: Sequence[Scored]) -> list[Scored]:
    scores: dict[str, float] = {}
    for id_, score in own:
        scores.setdefault(id_, score)
    return list(scores.items())


def _named(ids: Sequence[str]) -> dict[str, Fact]:
    """The first ids, and whether there are more."""
    return {"named": [shown(id_, 40) for id_ in ids[:EXAMPLES]], "more": len(ids) > EXAMPLES}


def of_run(label: str, path: Path) -> ListContender:
    """Make a contender of a TREC run; DataError when it cannot be read."""
    return replace(lists_of(label, "run", str(path), read_run(path)), file=path)


def of_frame(label: str, frame: pd.DataFrame) -> ListContender:
    """A table with a row a result: query, entry, score (or query_id, doc_id, score). Raises ConfigError."""
    columns = []
    for meaning, valid in COLUMNS.items():
        present = [name for name in valid if name in frame.columns]
        if not present:
            have = ", ".join(shown(name, 40) for name in frame)
            raise ConfigError(
                f"{label}: the table has no column for the {meaning} of a row ({', '.join(valid)}); it has {have}"
            )
        column = frame[present[0]]
        if getattr(column, "ndim", 1) != 1:
            raise ConfigError(f"{label}: the table has several columns {present[0]!r}; leave one of them")
        columns.append(list(column))
    lists: dict[str, list[Scored]] = {}
    for query, entry, score in zip(*columns, strict=True):
        lists.setdefault(read_id(label, query), []).append((read_id(label, entry), read_score(label, score)))
    return lists_of(label, "frame", "a table of lists", {q: best_first(places) for q, places in lists.items()})


def is_run(given: object) -> bool:
    """Whether it maps queries to scores of documents, as pytrec_eval has runs, or to ids; not labels to others."""
    return isinstance(given, Mapping) and all(
        all(map(np.isscalar, hits.values())) if isinstance(hits, Mapping) else isinstance(hits, list | tuple)
        for hits in given.values()
    )


def of_scores(label: str, run: HasScores | Mapping[Any, Any]) -> ListContender:
    """A run of ranx, or anything else that is, or whose `to_dict` gives, scores of documents, or ids, by query."""
    found = run if isinstance(run, Mapping) else run.to_dict()
    if not is_run(found):
        raise ConfigError(f"{label} is a run of {shown(found)}; give the scores of documents by query")
    lists = {read_id(label, query): _hits(label, hits) for query, hits in found.items()}
    return lists_of(label, "run", f"a {type(run).__name__}", lists)


def _hits(label: str, hits: Mapping[Any, Any] | Sequence[Any]) -> list[Scored]:
    if not isinstance(hits, Mapping):
        return read_answer(label, hits, ())
    return best_first([(read_id(label, id_), read_score(label, score)) for id_, score in hits.items()])


def of_transformer(label: str, transformer: Transformer) -> ListContender:
    """A transformer of PyTerrier, or a pipeline: a table of queries in, a table of results out."""
    return ListContender(label, "function", f"a {type(transformer).__name__}", partial(_transformed, transformer))


def _short(filters: Mapping[str, Mapping[str, Any]] | None) -> dict[str, object]:
    """Filters as people write them into queries.jsonl: one value that has to be there stands for itself."""
    return {
        field: tests["any"][0] if {*tests} == {"any"} and len(tests["any"]) == 1 else dict(tests)
        for field, tests in (filters or {}).items()
    }


def _transformed(
    transformer: Transformer, label: str, queries: Sequence[Query], limit: int, entries: Sequence[Entry]
) -> AnsweredLists:
    import pandas as pd

    texts = [query for query in queries if not is_open(query.text)]
    topics = pd.DataFrame([{"qid": query.id, "query": query.text} for query in texts])
    if any(query.filters for query in queries):  # as text, because pipelines compare cells
        topics["filter"] = [json.dumps(_short(query.filters.to_json()), sort_keys=True) for query in texts]
    frame = transformer.transform(topics)
    if not hasattr(frame, "columns"):
        raise ConfigError(
            f"{label} returned {shown(frame)}; a transformer returns a table with qid, docno and score"
        )
    answers = of_frame(label, frame).ask(label, queries, limit, entries)
    return replace(answers, notices=[*answers.notices, *_unscoped(label, queries, column=True)])


def of_search(label: str, kind: str, source: str, search: Search | Limited | Opened) -> ListContender:
    """Make a contender of a function or an endpoint, which is queried one query at a time and timed."""
    return ListContender(label, kind, source, partial(_searched, search))


def lists_of(label: str, kind: str, source: str, lists: Mapping[str, list[Scored]]) -> ListContender:
    """Lists that are there already: query id -> ids with their scores, best first."""
    return ListContender(label, kind, source, partial(_looked_up, lists), tuple(lists))


def _looked_up(
    lists: Mapping[str, list[Scored]], label: str, queries: Sequence[Query], limit: int, entries: Sequence[Entry]
) -> AnsweredLists:
    missing = sum(query.id not in lists for query in queries)
    facts: dict[str, Fact] = {"label": label, "missing": missing, "queries": len(queries)}
    if missing == len(queries) and lists:
        facts |= {**_named([*lists]), "first": shown(queries[0].id, 40)}
    found = [lists.get(query.id, []) for query in queries]
    return AnsweredLists(found, [Said("no_list", facts)] if missing else [])


def _searched(
    search: Search | Limited | Opened,
    label: str,
    queries: Sequence[Query],
    limit: int,
    entries: Sequence[Entry],
) -> AnsweredLists:
    if isinstance(search, Opened):
        with search.opened(entries) as session:
            answers = _searched(session, label, queries, limit, entries)
            told = [Said("session", {"label": label, "text": text}) for text in session.notices]
            return replace(answers, notices=[*answers.notices, *told])
    known = {entry.id for entry in entries}
    lists: list[list[Scored]] = []
    taken = []
    for query in bar(f"asking {label}")(queries):
        begin = time.perf_counter()
        answer = [] if is_open(query.text) else _asked(label, search, query, limit)
        taken.append(0.0 if is_open(query.text) else (time.perf_counter() - begin) * 1000)
        lists.append(read_answer(label, answer, known))
    silent = sum(is_open(query.text) for query in queries)
    notices = [Said("without_text", {"label": label, "count": silent})] if silent else []
    return AnsweredLists(lists, [*notices, *_unscoped(label, queries)], taken)


def _asked(label: str, search: Search | Limited, query: Query, limit: int) -> object:
    if isinstance(search, Limited):
        return search.ask(query, limit)
    try:
        return search(query)
    except (AttributeError, TypeError) as error:  # it was made for something else than a query
        raise ConfigError(
            f"{label} cannot be asked ({type(error).__name__}: {shown(str(error), 200)}); a function gets a query "
            "with its text, a retriever the text. Wrap it: lambda query: search(query.text)"
        ) from error


def _unscoped(label: str, queries: Sequence[Query], column: bool = False) -> list[Said]:
    """A notice when queries have filters, which nobody applies but such a search itself; `column`: of a table."""
    scoped = sum(bool(query.filters) for query in queries)
    return [Said("unscoped", {"label": label, "count": scoped, "column": column})] if scoped else []
