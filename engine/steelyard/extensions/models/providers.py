"""How providers want to be asked and how they answer: plain values in, rows of numbers out.

Sources: the providers' API references (OpenAI embeddings; Voyage embeddings; Cohere embed, v2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.base.errors import quote
from steelyard.embedders.embed import Kind


@dataclass(frozen=True)
class Shape:
    """Request and response of one kind of endpoint.

    A request holds at most `batch` texts and `characters` characters, so that it stays below the
    provider's limits of texts and tokens; a text is cut at `longest` characters.
    """

    path: str = "embeddings"
    batch: int = 128
    characters: int = 400_000
    longest: int = 24_000
    texts: str = "input"
    """The key of the texts."""
    roles: Mapping[Kind, str] = field(default_factory=dict)
    """What tells queries from entries, where the endpoint knows a difference."""
    options: Mapping[str, object] = field(default_factory=dict)
    """What else is asked."""

    def request(self, model: str, texts: Sequence[str], kind: Kind) -> dict[str, object]:
        """The JSON body that asks for the vectors of these texts."""
        role = {"input_type": self.roles[kind]} if self.roles else {}
        return {"model": model, self.texts: list(texts), **role, **self.options}

    def rows(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """One list of numbers a text, in the order of the texts; ValueError says what is wrong with the answer."""
        return by_index(_list(_value(answer, "data"), count), "embedding")


class CohereShape(Shape):
    """Cohere's v2 embed answers with vectors by type, without an index, in the order of the texts."""

    def rows(self, answer: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
        """See Shape.rows."""
        return _list(_value(_value(answer, "embeddings"), "float"), count)


OPENAI = Shape(options={"encoding_format": "float"})
"""``/v1/embeddings`` as OpenAI, Ollama, vLLM and llama.cpp offer it."""
VOYAGE = Shape(characters=300_000, roles={"query": "query", "entry": "document"}, options={"truncation": True})
COHERE = CohereShape(
    "embed",
    batch=96,
    texts="texts",
    roles={"query": "search_query", "entry": "search_document"},
    options={"embedding_types": ["float"]},
)


def by_index(items: Sequence[Any], name: str) -> list[Any]:
    """A value of each item, in the order of their `index`; ValueError where these are not 0, 1, 2 ..."""
    values: dict[int, Any] = {}
    for item in items:
        index = _value(item, "index")
        if type(index) is not int or not 0 <= index < len(items) or index in values:
            raise ValueError(f"index {quote(index)} is repeated or not in 0..{len(items) - 1}")
        values[index] = _value(item, name)
    return [values[index] for index in range(len(items))]


def _value(record: Any, name: str) -> Any:  # noqa: ANN401 -- whatever JSON held
    if not isinstance(record, dict) or name not in record:
        raise ValueError(f"{quote(record)} has no {name!r}")
    return record[name]


def _list(values: Any, count: int) -> list[Any]:  # noqa: ANN401 -- whatever JSON held
    if not isinstance(values, list) or len(values) != count:
        size = len(values) if isinstance(values, list) else "no list of"
        raise ValueError(f"{size} vectors for {count} texts")
    return values
