"""Contenders made of Python objects: tables, functions, retrievers, transformers, runs in memory, endpoints."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from steelyard.base.errors import ConfigError, quote
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.console import bar
from steelyard_eval.common.tabular import Frame, as_frame
from steelyard_eval.compare.list_contenders import AnsweredLists, ListContender, is_run, lists_of
from steelyard_eval.compare.python_searches import (
    AtAddress,
    HasScores,
    Limited,
    Opened,
    Search,
    Transformer,
    by_text,
    is_open,
    read_answer,
    read_id,
    read_score,
    search_of,
    takes_text,
)
from steelyard_eval.measures.trec_runs import Scored, best_first
from steelyard_eval.result.structs import Message

COLUMN_ALIASES = {
    "query": ("qid", "query_id", "query"),  # results of PyTerrier have the text of the query in `query`
    "entry": ("entry", "doc_id", "docno", "object_id", "id"),
    "score": ("score",),
}


def of_object(given: object, label: str) -> ListContender:
    """Make a contender of what has lists, or gives them; ConfigError for what does not."""
    if isinstance(given, type):
        raise ConfigError(f"{quote(given)} is a class; give one of its objects: {given.__name__}(...)")
    if (search := search_of(given)) is not None:  # before transformers: what LangChain runs has both
        return of_search(label or type(given).__name__, "function", type(given).__name__, search)
    if hasattr(given, "columns"):
        return of_frame(label or "frame", cast("Frame", given))
    if isinstance(given, AtAddress):
        return of_search(label or given.label, "endpoint", given.shown, cast("Limited | Opened", given))
    if isinstance(given, Mapping):
        return of_scores(label or "run", given)
    if isinstance(given, HasScores):  # before transformers: a column of a table has both
        return of_scores(label or str(getattr(given, "name", None) or "run"), given)
    if isinstance(given, Transformer):
        kind = type(given).__name__
        return ListContender(label or kind, "function", f"a {kind}", partial(_transformed, given))
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return of_search(label or name, "function", name, by_text(given) if takes_text(given) else given)
    raise ConfigError(
        f"{quote(given)} is not a contender; name a system, a strategy, a file, a URL, a DataFrame, a function, a "
        "retriever, a transformer or a run, or make a function of it: "
        "lambda query: [hit.id for hit in search(query.text)]"
    )


def of_frame(label: str, frame: Frame) -> ListContender:
    """A table with a row a result: query, entry, score (or query_id, doc_id, score). Raises ConfigError."""
    columns = []
    for meaning, valid in COLUMN_ALIASES.items():
        present = [name for name in valid if name in frame.columns]
        if not present:
            have = ", ".join(quote(name, 40) for name in frame)
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


def of_scores(label: str, run: HasScores | Mapping[Any, Any]) -> ListContender:
    """A run of ranx, or anything else that is, or whose `to_dict` gives, scores of documents, or ids, by query."""
    found = run if isinstance(run, Mapping) else run.to_dict()
    if not is_run(found):
        raise ConfigError(f"{label} is a run of {quote(found)}; give the scores of documents by query")
    lists = {read_id(label, query): _hits(label, hits) for query, hits in found.items()}
    return lists_of(label, "run", f"a {type(run).__name__}", lists)


def _hits(label: str, hits: Mapping[Any, Any] | Sequence[Any]) -> list[Scored]:
    if not isinstance(hits, Mapping):
        return read_answer(label, hits, ())
    return best_first([(read_id(label, id_), read_score(label, score)) for id_, score in hits.items()])


def _short(filters: Mapping[str, Mapping[str, Any]] | None) -> dict[str, object]:
    """Filters as people write them into queries.jsonl: one value that has to be there stands for itself."""
    return {
        field: tests["any"][0] if {*tests} == {"any"} and len(tests["any"]) == 1 else dict(tests)
        for field, tests in (filters or {}).items()
    }


def _transformed(
    transformer: Transformer, label: str, queries: Sequence[Query], limit: int, entries: Sequence[Entry]
) -> AnsweredLists:
    texts = [query for query in queries if not is_open(query.text)]
    topics = as_frame([{"qid": query.id, "query": query.text} for query in texts])
    if any(query.filters for query in queries):  # as text, because pipelines compare cells
        topics["filter"] = [json.dumps(_short(query.filters.to_json()), sort_keys=True) for query in texts]
    frame = transformer.transform(topics)
    if not hasattr(frame, "columns"):
        raise ConfigError(
            f"{label} returned {quote(frame)}; a transformer returns a table with qid, docno and score"
        )
    answers = of_frame(label, frame).ask(label, queries, limit, entries)
    return replace(answers, notices=[*answers.notices, *_unscoped(label, queries, column=True)])


def of_search(label: str, kind: str, source: str, search: Search | Limited | Opened) -> ListContender:
    """Make a contender of a function or an endpoint, which is queried one query at a time and timed."""
    return ListContender(label, kind, source, partial(_searched, search))


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
            told = [Message("session", {"label": label, "text": text}) for text in session.notices]
            return replace(answers, notices=[*answers.notices, *told])
    known = {entry.id for entry in entries}
    lists: list[list[Scored]] = []
    taken = []
    for query in bar(f"asking {label}", queries):
        begin = time.perf_counter()
        answer = [] if is_open(query.text) else _asked(label, search, query, limit)
        taken.append(0.0 if is_open(query.text) else (time.perf_counter() - begin) * 1000)
        lists.append(read_answer(label, answer, known))
    silent = sum(is_open(query.text) for query in queries)
    notices = [Message("without_text", {"label": label, "count": silent})] if silent else []
    return AnsweredLists(lists, [*notices, *_unscoped(label, queries)], taken)


def _asked(label: str, search: Search | Limited, query: Query, limit: int) -> object:
    if isinstance(search, Limited):
        return search.ask(query, limit)
    try:
        return search(query)
    except (AttributeError, TypeError) as error:  # it was made for something else than a query
        raise ConfigError(
            f"{label} cannot be asked ({type(error).__name__}: {quote(str(error), 200)}); a function gets a "
            "query with its text, a retriever the text. Wrap it: lambda query: search(query.text)"
        ) from error


def _unscoped(label: str, queries: Sequence[Query], column: bool = False) -> list[Message]:
    """A notice when queries have filters, which nobody applies but such a search itself; `column`: of a table."""
    scoped = sum(bool(query.filters) for query in queries)
    return [Message("unscoped", {"label": label, "count": scoped, "column": column})] if scoped else []
