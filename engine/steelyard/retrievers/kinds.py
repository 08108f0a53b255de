"""The declarations of retrievers and scorers, from which everything else is derived.

The signals that a table may contain, the names that expressions and weights files may use, what has to be
embedded and which parameters a recording fixes all follow from the lists in `steelyard.retrievers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.embedders.embed import Vectors
from steelyard.memory.query import Filters, Query
from steelyard.node import Option
from steelyard.retrievers.reading import Reading
from steelyard.stores.base import COSINE, Found, Readable, Space
from steelyard.stores.postings import Analysis

QueryVector = Callable[[str], Vectors]
"""From text to float32[dim]; all zeros when the model knows no word of the text."""


UNKNOWN = (math.nan, math.nan)
"""The ends of scores of which nothing is known."""


class Retriever(Protocol):
    """Finds candidates for a query."""

    def retrieve(self, query: Query, depth: int | None) -> Sequence[Found]:
        """Return the entries found in the query's scope, best first.

        Ties are broken by ascending id, also at the cut. Scores are finite.

        Parameters
        ----------
        depth : int or None
            How many to return at most; None for all.
        """


@runtime_checkable
class Foreseeing(Protocol):
    """A retriever that is faster when it knows what comes."""

    def expect(self, queries: Sequence[Query]) -> None:
        """These queries come next, with their scopes: compute for all of them what can be at once."""


@runtime_checkable
class Bounded(Protocol):
    """A retriever whose formula says between which ends its scores can lie, whatever else was found."""

    def ends(self, query: Query) -> tuple[float, float]:
        """The least and the most that a score of this query can be; NaN for an end that is not known."""


class Scorer(Protocol):
    """Computes a number for every candidate of a query."""

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """Score the candidates, float64[len(ids)], finite; a score does not depend on the other ids."""


class Parts(Protocol):
    """What a retriever or scorer is built from: one system over one store (see `steelyard.live.sources`)."""

    @property
    def name(self) -> str:
        """The system as ``system:profile``, for messages."""

    @property
    def store(self) -> Readable:
        """The store of entries, keywords and vectors."""

    @property
    def reading(self) -> Reading:
        """What the system indexes and how it reads queries."""

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """List the spaces of a layer's vectors, one for each model, with its embedder of queries; at least one.

        The text's vectors are used where the store has no layer l2. Raises EmbedderError without an embedder.
        """

    def counted(self, query: Query) -> Filters:
        """Return the scope of the entries whose words TF-IDF counts for a query."""


@dataclass(frozen=True)
class RetrieverConfig:
    """How one retriever searches."""

    depth: int | None = None
    """How many candidates it returns at most; None for all in scope."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    """FTS5's bm25 weights by field."""
    model: str = ""
    """The model of the vectors; empty for the model of the embedder."""
    filters: str = "before_cut"
    """Where the query's scope acts: before_cut (the list is full), after_cut (it may be shorter), or none."""
    similarity: str = COSINE
    """How `vector` compares: cosine, or l2, which is 1 - Euclidean distance."""
    after: tuple[str, ...] = ()
    """The retrievers whose lists it starts from, where it depends on others'."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Values of the parameters that the retriever declares, such as k1 and b of bm25; the others are defaults."""

    def to_json(self) -> dict[str, Any]:
        """Return the settings of a weights file; those at their defaults are left out."""
        named = {
            "filters": self.filters,
            "depth": self.depth,
            "field_weights": dict(self.field_weights),
            "model": self.model,
            "similarity": self.similarity,
            "after": list(self.after),
        }
        record = {name: value for name, value in named.items() if value not in (None, {}, "", COSINE, [])}
        whole = {name: int(value) for name, value in self.parameters.items() if value == int(value)}
        return record | dict(self.parameters) | whole  # 1 and 1.0 are one configuration, under one hash

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RetrieverConfig:
        """Read the settings from a weights file that has passed the schema."""
        named = {name: value for name, value in record.items() if name in cls.__dataclass_fields__}
        depth, after = named.pop("depth", None), tuple(named.pop("after", ()))
        parameters = {name: float(value) for name, value in record.items() if name not in cls.__dataclass_fields__}
        return cls(**named, depth=None if depth is None else int(depth), after=after, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What declarations of scorers and retrievers share."""

    name: str
    """The signal, as expressions write it."""
    layer: str = ""
    """The layer of vectors that the query is compared with (text, l0, l1, l2); empty: it embeds nothing."""
    counts: Callable[[Reading], Analysis | None] = lambda reading: None
    """The words that it counts in a system's entries."""


@dataclass(frozen=True, kw_only=True)
class ScorerKind(Kind):
    """The declaration of a scorer, which computes a number for every candidate, whichever retriever found it."""

    build: Callable[[Parts], Scorer]
    """Makes one for a system over a store."""
    ends: tuple[float, float] | None = None
    """The least and the most that its formula can give; None where it gives no such ends."""


@dataclass(frozen=True, kw_only=True)
class RetrieverKind(Kind):
    """The declaration of a retriever, which finds candidates and scores only those."""

    build: Callable[[Parts, RetrieverConfig], Any]
    """Makes a `Retriever` for a system over a store; ConfigError where the configuration does not fit the system.
    Where `after` names others, it has ``follow(query, depth, lists)`` instead, whose `lists` are those of these.
    """
    weighs_fields: bool = False
    """Whether it searches the system's full-text index, with a weight for each field."""
    compares: bool = False
    """Whether the system chooses the similarity of vectors."""
    bounded: bool = False
    """Whether its retrievers are `Bounded`, with both ends known for their usual settings."""
    whole: bool = False
    """Whether it returns every entry in scope, so that no depth cuts its list, and being returned does not
    make an entry a candidate."""
    aside: Filters | None = None
    """The entries that it searches separately from the system's corpus, merged into the ranking at the end."""
    after: tuple[str, ...] = ()
    """The retrievers that it may start from, and is therefore asked after."""
    starts: str = ""
    """The parameter that says how many places of each of their lists it reads."""
    parameters: tuple[Option, ...] = ()
    """The numbers that configure it."""
    seeks: Callable[[Reading, str], str | None] = lambda reading, text: None
    """What it looks for in entries, of the text of a query, for messages; None where it cannot tell."""

    def depth(self, limit: int, pool: int) -> int | None:
        """Return its depth in a search for `limit` results by a system that retrieves `pool` candidates.

        A list that is merged at the end is no longer than the result.
        """
        if self.whole:
            return None
        return pool if self.aside is None else limit

    def values(self, settings: RetrieverConfig) -> dict[str, float]:
        """Return every parameter by name, as set or by default.

        Raises ConfigError for a parameter that it does not declare, or a value outside the legal range.
        """
        known, given = {parameter.name: parameter for parameter in self.parameters}, settings.parameters
        if unknown := sorted(set(given) - set(known)):
            remedy = nearest(unknown[0], known) if known else "; it has none"
            raise ConfigError(f"unknown parameter {shown(unknown[0])} of {self.name}{remedy}")
        return {name: parameter.checked(given.get(name, parameter.default)) for name, parameter in known.items()}
