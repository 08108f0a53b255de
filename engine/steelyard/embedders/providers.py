"""How providers want to be asked and how they answer: plain values in, rows of numbers out.

Sources: the providers' API references (OpenAI embeddings; Voyage embeddings; Cohere embed, v2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from steelyard.base.errors import shown
from steelyard.embedders.embed import Kind


class Shape(Protocol):
    """Request and response of one kind of endpoint.

    A request holds at most `batch` texts and `characters` characters, so that it stays below the
    provider's limits of texts and tokens; a text is cut at `longest` characters.
    """

    path: str
    batch: int
    characters: int
    longest: int

    def request(self, model: str, texts: Sequence[str], kind: Kind) -> dict[str, Any]:
        """The JSON body that asks for the vectors of these texts."""

    def rows(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """One list of numbers a text, in the order of the texts; ValueError says what is wrong with the answer."""


class OpenAiShape:
    """``/v1/embeddings`` as OpenAI, Ollama, vLLM and llama.cpp offer it; knows no difference of queries."""

    path = "embeddings"
    batch = 128
    characters = 400_000
    longest = 24_000

    def request(self, model: str, texts: Sequence[str], kind: Kind) -> dict[str, Any]:
        """See Shape.request."""
        return {"model": model, "input": list(texts), "encoding_format": "float"}

    def rows(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """See Shape.rows; ordered by each item's `index`."""
        return by_index(_list(_value(answer, "data"), count), "embedding")


class VoyageShape(OpenAiShape):
    """Voyage: OpenAI's shape, with `input_type` to tell queries from documents."""

    characters = 300_000

    def request(self, model: str, texts: Sequence[str], kind: Kind) -> dict[str, Any]:
        """See Shape.request."""
        input_type = "query" if kind == "query" else "document"
        return {"model": model, "input": list(texts), "input_type": input_type, "truncation": True}


class CohereShape:
    """Cohere's v2 embed: vectors by type, without an index, in the order of the texts."""

    path = "embed"
    batch = 96
    characters = 400_000
    longest = 24_000

    def request(self, model: str, texts: Sequence[str], kind: Kind) -> dict[str, Any]:
        """See Shape.request."""
        input_type = "search_query" if kind == "query" else "search_document"
        return {"model": model, "texts": list(texts), "input_type": input_type, "embedding_types": ["float"]}

    def rows(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """See Shape.rows."""
        return _list(_value(_value(answer, "embeddings"), "float"), count)


def by_index(items: Sequence[Any], name: str) -> list[Any]:
    """A value of each item, in the order of their `index`; ValueError where these are not 0, 1, 2 ..."""
    found: dict[int, Any] = {}
    for item in items:
        index = _value(item, "index")
        if type(index) is not int or not 0 <= index < len(items) or index in found:
            raise ValueError(f"index {shown(index)} is repeated or not in 0..{len(items) - 1}")
        found[index] = _value(item, name)
    return [found[index] for index in range(len(items))]


def _value(record: Any, name: str) -> Any:  # noqa: ANN401 -- whatever JSON held
    if not isinstance(record, dict) or name not in record:
        raise ValueError(f"{shown(record)} has no {name!r}")
    return record[name]


def _list(values: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
    if not isinstance(values, list) or len(values) != count:
        size = len(values) if isinstance(values, list) else "no list of"
        raise ValueError(f"{size} vectors for {count} texts")
    return values
