"""Retrievers of other libraries in Python: a method from a text to documents, and where these have ids.

LangChain has `invoke` (and `get_relevant_documents` before), LlamaIndex `retrieve`. Nothing of them is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from steelyard.base.errors import ConfigError, shown
from steelyard.memory.query import Query

METHODS = ("invoke", "retrieve", "get_relevant_documents")
"""What retrievers call their search for a text, in the order in which they are tried."""
OTHERS = ("similarity_search", "search", "query", "run", "ask", "find", "get")
"""What other objects call theirs: only named, in the line that makes a function of it."""
IDS = ("id", "id_", "_id", "node_id", "doc_id", "document_id", "entry_id", "memory_id", "docno", "uuid", "source")
INSIDE = ("node", "document", "metadata", "meta", "payload")
"""Attributes of a document that may hold its id, too."""
SCORES = ("score", "relevance_score", "similarity")


class Invoked(Protocol):
    """A retriever such as LangChain's."""

    def invoke(self, text: str, /) -> Iterable[object]:
        """Documents for a text, best first."""


class Retrieving(Protocol):
    """A retriever such as LlamaIndex's."""

    def retrieve(self, text: str, /) -> Iterable[object]:
        """Documents for a text, best first."""


class Relevant(Protocol):
    """A retriever such as LangChain's before 0.1.46."""

    def get_relevant_documents(self, text: str, /) -> Iterable[object]:
        """Documents for a text, best first."""


Retriever: TypeAlias = Invoked | Retrieving | Relevant


def search_of(given: object) -> Callable[[Query], Any] | None:
    """The search of a retriever, for the text of a query; None for what has none of `METHODS`."""
    name = next((name for name in METHODS if callable(getattr(given, name, None))), None)
    if name is None or isinstance(given, type):
        return None
    return by_text(getattr(given, name))


def by_text(search: Callable[..., Any]) -> Callable[[Query], Any]:
    """A search for a query, of one for a text."""
    return lambda query: search(query.text)


def wrapped(given: object) -> str:
    """The line of code that makes a contender of an object: its own method, where it has a usual one."""
    name = next((name for name in OTHERS if callable(getattr(given, name, None))), None)
    call = f"it.{name}" if name else "search"
    return f"lambda query: [hit.id for hit in {call}(query.text)]"


def takes_text(search: Callable[..., object]) -> bool:
    """Whether a function says of its first argument that it is a text."""
    told = getattr(search, "__annotations__", {})
    code = getattr(search, "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    return told.get(first) in (str, "str")


def misread(label: str, error: Exception) -> ConfigError:
    """That a function or a retriever cannot be asked like this."""
    return ConfigError(
        f"{label} cannot be asked ({type(error).__name__}: {shown(str(error), 200)}); a function gets a query "
        "with its text, a retriever the text. Wrap it: lambda query: search(query.text)"
    )


def listed(answer: object) -> object:
    """The results in an answer: itself, or the only list in a mapping."""
    if not isinstance(answer, Mapping):
        return answer
    lists = [value for value in answer.values() if isinstance(value, list)]
    return lists[0] if len(lists) == 1 else answer


def document(item: object, known: Collection[str]) -> tuple[object, object]:
    """The id and the score of a document, None where it has none; an id of the corpus, `known`, comes first."""
    item, score = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    parts = [item, *_inside(item), *(deeper for part in _inside(item) for deeper in _inside(part))]
    ids = [id_ for part in parts for id_ in _ids(part)]
    found = next((id_ for id_ in ids if str(id_) in known), next(iter(ids), None))
    scores = (_of(part, name) for part in parts for name in SCORES)
    return found, score if score is not None else next((one for one in scores if one is not None), None)


def _inside(part: object) -> list[object]:
    return [inner for name in INSIDE if (inner := _of(part, name)) is not None]


def is_open(value: object) -> bool:
    """Whether a text is missing or blank: None, NaN, the empty text."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and not value.strip())


def _ids(part: object) -> Iterator[object]:
    for name in IDS:
        if isinstance(value := _of(part, name), str | int) and not isinstance(value, bool) and value != "":
            yield value


def _of(part: object, name: str) -> object:
    """A key of a mapping, or an attribute of an object."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)
