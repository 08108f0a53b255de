"""What searches in Python are, and what they answer: ids, pairs, or documents of other libraries.

LangChain has `invoke` (and `get_relevant_documents` before), LlamaIndex `retrieve`, Haystack `run(query=...)`.
Nothing of them is imported.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from steelyard.base.errors import ConfigError, DataError, quote
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.tabular import Frame
from steelyard_eval.measures.trec_runs import Scored

SEARCH_METHODS = ("invoke", "retrieve", "get_relevant_documents")
IDS = ("id", "id_", "_id", "node_id", "doc_id", "document_id", "entry_id", "memory_id", "docno", "uuid", "source")
MAY_HOLD_ID = ("node", "document", "metadata", "meta", "payload")
SCORES = ("score", "relevance_score", "similarity")


Search: TypeAlias = Callable[[Query], Iterable[str] | Iterable[tuple[str, float]]]
"""A search function of your own: from a query to ids, or to pairs of id and score, best first."""


@runtime_checkable
class Limited(Protocol):
    """A search that takes the number of results, as an endpoint does."""

    def ask(self, query: Query, limit: int) -> list[tuple[str, float]] | list[str]:
        """Answer one query, best first."""


@runtime_checkable
class Opened(Protocol):
    """A search that runs only while it is asked, as a server of our own starting does."""

    def opened(self, entries: Sequence[Entry]) -> AbstractContextManager["RunningSearch"]:
        """Start it, for the corpus whose entries it is to name."""


@runtime_checkable
class AtAddress(Protocol):
    """An endpoint: a search that is `Limited` or `Opened`, and says where it is."""

    @property
    def label(self) -> str:
        """What it is called where it is given no name."""

    @property
    def shown(self) -> str:
        """Its address, without keys."""


@runtime_checkable
class Transformer(Protocol):
    """What PyTerrier calls a transformer, pipelines of several included."""

    def transform(self, topics: Frame, /) -> Frame:
        """From queries (qid, query, and filter where any has one) to results (qid, docno, score)."""


@runtime_checkable
class HasScores(Protocol):
    """A run in memory, such as ranx's."""

    def to_dict(self) -> Mapping[Any, Mapping[Any, Any]]:
        """Query -> document -> score."""


class RunningSearch(Limited, Protocol):
    """A search that is running; `notices` say how it was asked and read."""

    @property
    def notices(self) -> list[str]:
        """A sentence each."""


class Invoked(Protocol):
    """A retriever such as LangChain's."""

    def invoke(self, text: str, /) -> Iterable[object]:
        """Documents for a text, best first."""


class Retrieving(Protocol):
    """A retriever such as LlamaIndex's."""

    def retrieve(self, text: str, /) -> Iterable[object]:
        """Documents for a text, best first."""


def search_of(given: object) -> Callable[[Query], Any] | None:
    """The search of a retriever, for the text of a query; None for what has none of `METHODS`, nor Haystack's."""
    methods = [getattr(given, name, None) for name in SEARCH_METHODS]
    if (search := next(filter(callable, methods), None)) is not None:
        return by_text(search)
    run = getattr(given, "run", None)
    if callable(run) and "query" in inspect.signature(run).parameters:
        return lambda query: run(query=query.text)
    return None


def by_text(search: Callable[..., Any]) -> Callable[[Query], Any]:
    """A search for a query, of one for a text."""
    return lambda query: search(query.text)


def takes_text(search: Callable[..., object]) -> bool:
    """Whether a function says of its first argument that it is a text."""
    told = getattr(search, "__annotations__", {})
    code = getattr(search, "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    return told.get(first) in (str, "str")


def document(item: object, known: Collection[str]) -> tuple[object, object]:
    """The id and the score of a document, None where it has none; an id of the corpus, `known`, comes first."""
    item, score = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    inner = _keys_or_attributes(item, MAY_HOLD_ID)
    parts = [item, *inner, *(deeper for part in inner for deeper in _keys_or_attributes(part, MAY_HOLD_ID))]
    named = [value for part in parts for value in _keys_or_attributes(part, IDS)]
    ids = [id_ for id_ in named if isinstance(id_, str | int) and not isinstance(id_, bool) and id_ != ""]
    found = next((id_ for id_ in ids if str(id_) in known), next(iter(ids), None))
    scores = [score for part in parts for score in _keys_or_attributes(part, SCORES)]
    return found, score if score is not None else next(iter(scores), None)


def _keys_or_attributes(part: object, names: Iterable[str]) -> list[object]:
    found = (part.get(name) if isinstance(part, Mapping) else getattr(part, name, None) for name in names)
    return [value for value in found if value is not None]


def is_open(value: object) -> bool:
    """Whether a text is missing or blank: None, NaN, the empty text."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and not value.strip())


def read_answer(label: str, answer: object, known: Collection[str]) -> list[Scored]:
    """Ids, pairs of id and score, or documents, in the order given; ids without scores get n, n - 1, ... 1."""
    if isinstance(answer, Mapping):  # the only list in it
        lists = [value for value in answer.values() if isinstance(value, list)]
        answer = lists[0] if len(lists) == 1 else answer
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise ConfigError(
            f"{label} returned {quote(answer)}; return ids, pairs of id and score, or documents with ids: "
            "lambda query: [hit.id for hit in search(query.text)]"
        )
    items = list(answer)
    if all(isinstance(item, str | int) for item in items):
        return [(read_id(label, item), float(len(items) - i)) for i, item in enumerate(items)]
    if all(isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str | int) for item in items):
        return [
            (read_id(label, id_), read_score(label, score, "correct it, or leave scores out"))
            for id_, score in items
        ]
    found = [document(item, known) for item in items]
    if lack := next((item for item, (id_, _) in zip(items, found, strict=True) if id_ is None), None):
        raise ConfigError(
            f"{label} returned {quote(lack)} in a list, which has no id; return ids, or pairs of id and score: "
            'lambda query: [hit.metadata["id"] for hit in search(query.text)]'
        )
    scored = all(score is not None for _, score in found)
    return [
        (read_id(label, id_), read_score(label, score) if scored else float(len(items) - i))
        for i, (id_, score) in enumerate(found)
    ]


def read_id(label: str, value: object) -> str:
    """An id as text; DataError for one that no file can hold."""
    try:
        text = str(value)
        text.encode()
    except ValueError:  # half of a surrogate pair, which no file can hold, or an integer beyond what is written
        raise DataError(f"{label}: id {quote(value)} cannot be written as text; correct it") from None
    return text


def read_score(label: str, value: object, remedy: str = "correct it") -> float:
    """A finite score; DataError for anything else."""
    try:
        score = float(value)  # type: ignore[arg-type]  # whatever the other side gave
    except (TypeError, ValueError, OverflowError):  # an integer beyond floats
        score = float("nan")
    if not np.isfinite(score):
        raise DataError(f"{label}: score {quote(value)} is not a finite number; {remedy}")
    return score
