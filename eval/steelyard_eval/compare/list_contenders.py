"""Contenders that have ranked lists only: TREC runs, and what `python_contenders` makes.

Their lists are measured like any other. How they were made is not known, so there are no signals to explain, no
weights to tune, and no embedded queries to count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from steelyard.base.errors import quote
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import written_as
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.trec_runs import Scored, read_run
from steelyard_eval.result.structs import Fact, Message

MAX_NAMED_IDS = 3


@dataclass(frozen=True)
class AnsweredLists:
    """The answers of a contender: scored ids of every query, notices, and milliseconds where measured."""

    lists: list[list[Scored]]
    notices: list[Message]
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
            notices.append(Message("unknown_ids", facts | _named_ids(odd)))
        if odd := [query for query in self.queries if query not in asked]:
            facts = {"label": self.label, "odd": len(odd), "queries": len(self.queries), "data": dataset.called}
            notices.append(Message("foreign_queries", facts | _named_ids(odd)))
        if repeated:
            notices.append(Message("repeated", {"label": self.label, "places": repeated}))
        return AnsweredLists(lists, notices, answers.taken)


def _firsts(own: Sequence[Scored]) -> list[Scored]:
    scores: dict[str, float] = {}
    for id_, score in own:
        scores.setdefault(id_, score)
    return list(scores.items())


def _named_ids(ids: Sequence[str]) -> dict[str, Fact]:
    return {"named": [quote(id_, 40) for id_ in ids[:MAX_NAMED_IDS]], "more": len(ids) > MAX_NAMED_IDS}


def of_run(label: str, path: Path) -> ListContender:
    """Make a contender of a TREC run; DataError when it cannot be read."""
    return replace(lists_of(label, "run", str(path), read_run(path)), file=path)


def is_run(given: object) -> bool:
    """Whether it maps queries to scores of documents, as pytrec_eval has runs, or to ids; not labels to others."""
    return isinstance(given, Mapping) and all(
        all(map(np.isscalar, hits.values())) if isinstance(hits, Mapping) else isinstance(hits, list | tuple)
        for hits in given.values()
    )


def lists_of(label: str, kind: str, source: str, lists: Mapping[str, list[Scored]]) -> ListContender:
    """Lists that are there already: query id -> ids with their scores, best first."""
    return ListContender(label, kind, source, partial(_looked_up, lists), tuple(lists))


def _looked_up(
    lists: Mapping[str, list[Scored]], label: str, queries: Sequence[Query], limit: int, entries: Sequence[Entry]
) -> AnsweredLists:
    missing = sum(query.id not in lists for query in queries)
    facts: dict[str, Fact] = {"label": label, "missing": missing, "queries": len(queries)}
    if missing == len(queries) and lists:
        facts |= {**_named_ids([*lists]), "first": quote(queries[0].id, 40)}
    found = [lists.get(query.id, []) for query in queries]
    return AnsweredLists(found, [Message("no_list", facts)] if missing else [])
