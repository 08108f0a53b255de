"""How a system reads entries and queries, which decides what its retrievers can find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import EVERY_FIELD, Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.memory.text import CONTENT, content, quote, terms, unique_words
from steelyard.stores.base import KeywordIndex, TextSearch
from steelyard.stores.postings import Analysis

MatchBuilder = Callable[[str], str]
"""From the text of a query to an FTS5 expression; empty when there is nothing to search for."""


def words_or(text: str) -> str:
    """Join the words of a query by OR, without stop words unless the query has no other words.

    >>> words_or("how do we rotate the token?")
    '"how" OR "do" OR "we" OR "rotate" OR "token"'
    """
    return " OR ".join(map(quote, unique_words(text)))


def itself(uri: str) -> str:
    """The URI: no entry lies in another."""
    return uri


def no_intent(text: str) -> str:
    """No intent, whatever the text asks."""
    return ""


def as_asked(text: str) -> str:
    """The text as it is."""
    return text


@dataclass(frozen=True)
class Words:
    """How entries and queries are split into words, for signals that count words."""

    text: Callable[[Entry], str] = content
    """Returns the text of an entry that is counted."""
    split: Callable[[str], list[str]] = terms
    """Splits a text into words."""
    fields: tuple[str, ...] = EVERY_FIELD
    """The fields of an entry that `text` reads, so that others need not be."""
    least: int = 0
    """How many words an entry needs to be counted at all."""
    whole: bool = False
    """Whether statistics are those of all that the system searches, not of the query's own scope."""

    def of(self, entry: Entry) -> list[str]:
        """Return the words of an entry."""
        return self.split(self.text(entry))

    @cached_property
    def analysis(self) -> Analysis:
        """How a store counts these words."""
        name = " ".join(f"{function.__module__}.{function.__qualname__}" for function in (self.text, self.split))
        fields = CONTENT if self.text is content else self.fields
        return Analysis(name, lambda entry: (self.of(entry), ()), fields)


@dataclass(frozen=True)
class Reading:
    """What a system indexes and embeds, which entries it searches, and how it turns queries into expressions.

    Recordings compare the functions by their names, so a lambda is refused.
    """

    index: KeywordIndex | TextSearch
    """The full-text index: FTS5 over fields of the vault, or PostgreSQL's rules in memory."""
    recipe: str
    """The template of the embedded text, such as ``{title} {text}``."""
    match: MatchBuilder = words_or
    """Turns a query into an FTS5 expression."""
    match_memory: MatchBuilder = words_or
    """The same for entries of kind memory, which are searched separately."""
    words: Words = field(default_factory=Words)
    """The words that TF-IDF counts."""
    bm25_words: Words = field(default_factory=Words)
    """What BM25 counts."""
    classify: Callable[[str], str] = no_intent
    """The intent of a query that names none; empty when it has none that matters."""
    confidence: Callable[[str], float] | None = None
    """How sure `classify` is of a text, 0..1; None where it has no measure."""
    intents: tuple[str, ...] = ()
    """The intents that a query may name; none where nothing classifies, and any word may choose a strategy."""
    rewrite: Callable[[str], str] = as_asked
    """The text that keywords match; what is embedded is the text as asked."""
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
        read = (words.text, words.split, counted.text, counted.split)
        for function in (self.match, self.match_memory, self.classify, self.rewrite, self.directory, *read):
            if getattr(function, "__name__", "<lambda>") == "<lambda>":
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
            "words": [words.text.__name__, words.split.__name__, self.valid_words],
            "searched": [str(self.corpus), self.valid_only],
            "hidden": {name: str(shown) for name, shown in self.hidden.items()},
            "directory": self.directory.__name__,
            "classified": self.classify.__name__,
            "bm25_words": [counted.text.__name__, counted.split.__name__, counted.least, counted.whole],
        }
