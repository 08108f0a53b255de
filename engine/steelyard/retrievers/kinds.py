"""What a retriever or a scorer declares about itself; everything else reads these declarations.

The signals that a table may hold, the names that an expression and a weights file may use, what has to be
embedded, which parameters a recording fixes: all of that follows from the lists in `steelyard.retrievers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.arrays import Floats
from steelyard.embed import Vectors
from steelyard.errors import ConfigError, nearest, shown
from steelyard.filters import Filters
from steelyard.query import Query
from steelyard.reading import Reading
from steelyard.stores.base import COSINE, Found, Readable, Space

QueryVector = Callable[[str], Vectors]
"""Text to float32[dim]; all zeros when the text means nothing to the model."""


class Retriever(Protocol):
    """Finds candidates for a query."""

    def retrieve(self, query: Query, depth: int | None) -> Sequence[Found]:
        """The entries in the query's scope, best first, down to `depth` (None: all there are).

        Ties are by ascending id, also at the cut. Scores are finite.
        """


class Scorer(Protocol):
    """Gives every candidate of a query a number."""

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """float64[len(ids)], finite; the value of an id does not depend on the other ids."""


class Parts(Protocol):
    """What a retriever or a scorer is built from: one system over one store (see `steelyard.sources`)."""

    @property
    def name(self) -> str:
        """``system:profile``, for messages."""

    @property
    def store(self) -> Readable:
        """Where entries, keywords and vectors are."""

    @property
    def reading(self) -> Reading:
        """What the system reads of entries and queries."""

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """Where the vectors of a layer are, model by model, and how a query is embedded for each; at least one.

        Those of the text stand for an l2 that the store has not. EmbedderError without an embedder.
        """

    def counted(self, query: Query) -> Filters:
        """The entries whose words TF-IDF counts for a query."""


@dataclass(frozen=True)
class Parameter:
    """A number that a retriever is configured by; a recording fixes its value."""

    name: str
    default: float
    low: float
    high: float
    """Both ends are legal."""
    text: str
    """What it does, for the schema of weights files."""

    def checked(self, value: float) -> float:
        """The value; ConfigError outside the legal range."""
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise ConfigError(
                f"{self.name} is {shown(value)}; it must lie between {self.low:g} and {self.high:g} "
                f"({self.default:g} by default)"
            )
        return value


@dataclass(frozen=True)
class RetrieverConfig:
    """How one retriever searches."""

    depth: int | None = None
    """How many candidates it returns; None: all in scope."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    """FTS5's bm25 weights by field."""
    model: str = ""
    """The model of the vectors; empty: whatever the embedder is."""
    filters: str = "before_cut"
    """Where the query's scope acts: before_cut (the list is full), after_cut (it may be short), none."""
    similarity: str = COSINE
    """How `vector` compares: cosine, or l2, 1 - Euclidean distance."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """The parameters that the retriever declares, as k1 and b of bm25; those left out have their defaults."""

    def to_json(self) -> dict[str, Any]:
        """Only what is set."""
        record: dict[str, Any] = {"filters": self.filters}
        if self.depth is not None:
            record["depth"] = self.depth
        if self.field_weights:
            record["field_weights"] = dict(self.field_weights)
        if self.model:
            record["model"] = self.model
        if self.similarity != COSINE:
            record["similarity"] = self.similarity
        return record | dict(self.parameters)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RetrieverConfig:
        """The settings of a weights file that fits the schema; JSON counts 20.0 as an integer, Python does not."""
        own = {name: value for name, value in record.items() if name in cls.__dataclass_fields__}
        depth = own.pop("depth", None)
        parameters = {name: float(value) for name, value in record.items() if name not in {*own, "depth"}}
        return cls(**own, depth=None if depth is None else int(depth), parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class ScorerKind:
    """A scorer: a number for every candidate, whoever found it."""

    name: str
    """The signal, as expressions write it."""
    build: Callable[[Parts], Scorer]
    """Makes one for a system over a store."""
    layer: str = ""
    """The layer of vectors that the query is compared with (text, l0, l1, l2); empty: it embeds nothing."""


@dataclass(frozen=True, kw_only=True)
class RetrieverKind:
    """A retriever: it finds candidates, and has a number for those it returned alone."""

    name: str
    """The signal, as expressions write it."""
    build: Callable[[Parts, RetrieverConfig], Retriever]
    """Makes one for a system over a store; ConfigError where the configuration does not fit the system."""
    layer: str = ""
    """The layer of vectors that the query is compared with (text, l0, l1, l2); empty: it embeds nothing."""
    weighs_fields: bool = False
    """Whether it searches the system's full-text index, with a weight a field."""
    compares: bool = False
    """Whether the system chooses by which similarity it compares vectors."""
    whole: bool = False
    """Whether it covers every entry in scope, so that no depth cuts its list and none of its entries is a
    candidate merely because it was returned."""
    aside: Filters | None = None
    """Entries of their own that it searches beside the system's corpus, merged when the list is finished."""
    parameters: tuple[Parameter, ...] = ()
    """The numbers it is configured by."""

    def depth(self, limit: int, pool: int) -> int | None:
        """The depth for a search of `limit` results by a system whose retrievers return `pool` candidates.

        What is merged in the end is no longer than the list.
        """
        if self.whole:
            return None
        return pool if self.aside is None else limit

    def values(self, settings: RetrieverConfig) -> dict[str, float]:
        """Every parameter by name, as set or by default.

        Raises ConfigError for a parameter that it does not declare, or a value outside the legal range.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if unknown := sorted(set(settings.parameters) - set(known)):
            remedy = nearest(unknown[0], known) if known else "; it has none"
            raise ConfigError(f"unknown parameter {shown(unknown[0])} of {self.name}{remedy}")
        return {name: own.checked(settings.parameters.get(name, own.default)) for name, own in known.items()}
