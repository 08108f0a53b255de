"""The declarations of retrievers and scorers, from which everything else is derived.

The signals that a table may contain, the names that expressions and weights files may use, what has to be
embedded and which parameters a recording fixes all follow from the lists in `steelyard.retrievers`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.embedders.embed import Vectors
from steelyard.memory.query import EVERYTHING, Filters, Intent, Query, no_intent, unchanged
from steelyard.memory.text import fts_quote
from steelyard.memory.words import unique_words
from steelyard.node import Option
from steelyard.stores.analysis import Analysis
from steelyard.stores.base import COSINE, KeywordIndex, ReadableStore, ScoredId, Space, TextSearch
from steelyard.stores.postings import TokenSettings, WordAnalyzer

QueryVector = Callable[[str], Vectors]
"""From text to float32[dim]; all zeros when the model knows no word of the text."""
UNKNOWN = (math.nan, math.nan)
"""The ends of scores of which nothing is known."""


class Retriever(Protocol):
    """Finds candidates for a query.

    One whose formula says between which ends a score of a query can lie, whatever else was found, has
    ``ends(query)``, with NaN for an end that is not known. One that is faster when it knows what comes has
    ``expect(queries)``: these come next, with their scopes.
    """

    def retrieve(self, query: Query, depth: int | None) -> Sequence[ScoredId]:
        """Return the entries found in the query's scope, best first, at most `depth` (None: all).

        Ties are broken by ascending id, also at the cut. Scores are finite.
        """


Scorer = Callable[[Query, Sequence[str]], Floats]
"""Scores the candidates of a query, float64[ids], finite; a score does not depend on the other ids."""


class BuildContext(Protocol):
    """What a retriever or scorer is built from: one system over one store (see `steelyard.live.sources`)."""

    @property
    def name(self) -> str:
        """The system as ``system:profile``, for messages."""

    @property
    def store(self) -> ReadableStore:
        """The store of entries, keywords and vectors."""

    @property
    def reading(self) -> "Reading":
        """What the system indexes and how it reads queries."""

    def vectors(self, layer: str) -> list[tuple[Space, QueryVector]]:
        """List the spaces of a layer's vectors, one for each model, with its embedder of queries; at least one.

        The text's vectors are used where the store has no layer l2. Raises EmbedderError without an embedder.
        """

    def word_scope(self, query: Query) -> Filters:
        """Return the scope of the entries whose words TF-IDF counts for a query."""


@dataclass(frozen=True)
class RetrieverConfig:
    """How one retriever searches."""

    depth: int | None = None
    """How many candidates it returns at most; None for all in scope."""
    field_weights: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    """The model of the vectors; empty for the model of the embedder."""
    filters: str = "before_cut"
    """Where the query's scope acts: before_cut (the list is full), after_cut (it may be shorter), or none."""
    similarity: str = COSINE
    """How `vector` compares: cosine, l2 (1 - Euclidean distance), or reciprocal_l2: 1 / (1 + that distance)."""
    after: tuple[str, ...] = ()
    """The retrievers whose lists it starts from, where it depends on others'."""
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    """Values of the parameters that the retriever declares, such as k1 and b of bm25; the others are defaults."""

    def to_json(self) -> dict[str, Any]:
        """Return the settings of a weights file; those at their defaults are left out."""
        lists = {"field_weights": dict(self.field_weights), "after": list(self.after)}
        named = {name: value for name, value in (vars(self) | lists).items() if name != "parameters"}
        record = {name: value for name, value in named.items() if value not in (None, {}, "", COSINE, [])}
        numbers = ((name, value) for name, value in self.parameters.items() if not isinstance(value, str))
        whole = {name: int(value) for name, value in numbers if value == int(value)}
        return record | dict(self.parameters) | whole  # 1 and 1.0 are one configuration, under one hash

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "RetrieverConfig":
        """Read the settings from a weights file that has passed the schema."""
        named = {name: value for name, value in record.items() if name in cls.__dataclass_fields__}
        depth, after = named.pop("depth", None), tuple(named.pop("after", ()))
        others = ((name, value) for name, value in record.items() if name not in cls.__dataclass_fields__)
        parameters = {name: value if isinstance(value, str) else float(value) for name, value in others}
        return cls(**named, depth=None if depth is None else int(depth), after=after, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What declarations of scorers and retrievers share."""

    name: str
    """The signal, as expressions write it."""
    layer: str = ""
    """The layer of vectors that the query is compared with (text, l0, l1, l2); empty: it embeds nothing."""
    counts: "Callable[[Reading, ReadableStore], WordAnalyzer | None]" = lambda reading, store: None
    """The words that it counts in a system's entries."""


@dataclass(frozen=True, kw_only=True)
class ScorerKind(Kind):
    """The declaration of a scorer, which computes a number for every candidate, whichever retriever found it."""

    build: Callable[[BuildContext], Scorer]
    ends: tuple[float, float] | None = None
    """The least and the most that its formula can give; None where it gives no such ends."""


@dataclass(frozen=True, kw_only=True)
class RetrieverKind(Kind):
    """The declaration of a retriever, which finds candidates and scores only those."""

    build: Callable[[BuildContext, RetrieverConfig], Any]
    """Makes a `Retriever`; ConfigError where the configuration does not fit the system. Where `after` names
    others, it has ``follow(query, depth, lists)`` instead, whose `lists` are those of these."""
    check: "Callable[[Reading, RetrieverConfig], object]" = lambda reading, settings: None
    """ConfigError where the settings do not fit how a system reads, before anything is built."""
    weighs_fields: bool = False
    """Whether it searches the system's full-text index, with a weight for each field."""
    compares: bool = False
    """Whether the system chooses the similarity of vectors."""
    bounded: bool = False
    """Whether its retrievers have `ends`, both known for their usual settings."""
    uncut: bool = False
    """Whether it returns all in scope: no depth cuts its list, and its list alone makes no candidates."""
    separate_scope: Filters | None = None
    """The entries that it searches separately from the system's corpus, merged into the ranking at the end."""
    after: tuple[str, ...] = ()
    """The retrievers that it may start from, and is therefore asked after."""
    starts: str = ""
    """The parameter that says how many places of each of their lists it reads."""
    parameters: tuple[Option, ...] = ()
    seeks: "Callable[[Reading, str], str | None]" = lambda reading, text: None
    """What it looks for in entries, of the text of a query, for messages; None where it cannot tell."""

    def values(self, settings: RetrieverConfig) -> dict[str, Any]:
        """Return every parameter by name, as set or by default.

        Raises ConfigError for a parameter that it does not declare, or a value outside the legal range.
        """
        known, given = {parameter.name: parameter for parameter in self.parameters}, settings.parameters
        if unknown := sorted(given.keys() - known):
            remedy = nearest(unknown[0], known) if known else "; it has none"
            raise ConfigError(f"unknown parameter {quote(unknown[0])} of {self.name}{remedy}")
        return {name: parameter.checked(given.get(name, parameter.default)) for name, parameter in known.items()}

    def recorded(self, settings: RetrieverConfig) -> dict[str, Any]:
        """Return the values as a recording's fingerprint has them, without those in `quiet`."""
        return {name: value for name, value in self.values(settings).items() if value != self.quiet.get(name, ...)}

    @property
    def quiet(self) -> dict[str, Any]:
        """The defaults that fingerprints leave out: of parameters younger than recordings that people keep."""
        return {parameter.name: parameter.default for parameter in self.parameters if parameter.quiet}


def words_or(text: str) -> str:
    """Join the words of a query by OR, without stop words unless the query has no other words.

    >>> words_or("how do we rotate the token?")
    '"how" OR "do" OR "we" OR "rotate" OR "token"'
    """
    return " OR ".join(map(fts_quote, unique_words(text)))


def itself(uri: str) -> str:
    """The URI: no entry lies in another."""
    return uri


@dataclass(frozen=True)
class Reading:
    """What a system indexes and embeds, which entries it searches, and how it turns queries into expressions.

    Recordings compare the functions by their names, so a lambda is refused.
    """

    index: KeywordIndex | TextSearch
    """The full-text index: FTS5 over fields of the vault, or PostgreSQL's rules in memory."""
    recipe: str
    """The template of the embedded text, such as ``{title} {text}``."""
    match: Callable[[str], str] = words_or
    """Turns a query into an FTS5 expression; empty when there is nothing to search for."""
    match_memory: Callable[[str], str] = words_or
    """The same for entries of kind memory, which are searched separately."""
    words: TokenSettings = field(default_factory=TokenSettings)
    """The words that TF-IDF counts."""
    bm25_words: TokenSettings = field(default_factory=TokenSettings)
    """What BM25 counts."""
    classify: Callable[[str], Intent] = no_intent
    """The intent of a query that names none."""
    intents: tuple[str, ...] = ()
    """The intents that a query may name; none where nothing classifies, and any word may choose a strategy."""
    rewrite: Callable[[str], str] = unchanged
    """The text that keywords match; what is embedded is the text as asked."""
    embeds: Callable[[str], str] | None = None
    """The text that is embedded where nothing else rewrites it; None for the text as asked."""
    valid_words: bool = False
    """Whether TF-IDF counts only the entries that are valid at the query's clock."""
    corpus: Filters = EVERYTHING
    """The entries that are searched."""
    hidden: Mapping[str, Filters] = field(default_factory=dict)
    """By retriever, the entries of the corpus that it may return, where these are not all."""
    valid_only: bool = False
    """Whether only entries whose validity window contains the query's clock are searched."""
    directory: Callable[[str], str] = itself
    """The URI whose abstract and overview stand for the entry at a URI."""

    def __post_init__(self) -> None:
        words, counted = self.words, self.bm25_words
        read = (words.text, words.split, counted.text, counted.split, self.embeds or unchanged)
        for function in (self.match, self.match_memory, self.classify, self.rewrite, self.directory, *read):
            if not isinstance(function, Analysis) and getattr(function, "__name__", "<lambda>") == "<lambda>":
                raise ConfigError(
                    f"{function!r} has no name, and recordings compare functions by their names; use a def"
                )

    def identity(self) -> dict[str, object]:
        """Return everything except the embedded text, as JSON values for the fingerprint of a recording.

        Function names are part of recordings that people keep: renaming a function makes those unusable.
        """
        index, words, counted = self.index, self.words, self.bm25_words
        return {
            "index": {"text": index.text.__module__, "tokenizer": "tsearch english"}
            if isinstance(index, TextSearch)
            else {"fields": list(index.fields), "tokenizer": index.tokenizer},
            "match": self.match.__name__,
            "match_memory": self.match_memory.__name__,
            "words": [*words.named, self.valid_words],
            "searched": [str(self.corpus), self.valid_only],
            "hidden": {name: str(shown) for name, shown in self.hidden.items()},
            "directory": self.directory.__name__,
            "classified": self.classify.__name__,
            "bm25_words": [*counted.named, counted.least, counted.corpus_wide],
            **({"embeds": self.embeds.__name__} if self.embeds else {}),
        }
