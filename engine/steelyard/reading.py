"""What a system reads of entries and of queries: all that decides what its retrievers can find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steelyard.entry import Entry
from steelyard.errors import ConfigError
from steelyard.filters import EVERYTHING, Filters
from steelyard.stores.base import KeywordIndex, TextSearch
from steelyard.text import content, quote, terms, unique_words

MatchBuilder = Callable[[str], str]
"""The text of a query as an FTS5 expression; empty when it asks for nothing."""


Classifier = Callable[[str], str]
"""The intent of a query that names none; empty when it is none that matters."""


def words_or(text: str) -> str:
    """The words of a query that are not stop words (all of them if there are no others), joined by OR.

    >>> words_or("how do we rotate the token?")
    '"how" OR "do" OR "we" OR "rotate" OR "token"'
    """
    return " OR ".join(map(quote, unique_words(text)))


def itself(uri: str) -> str:
    """The URI: no entry lies in another."""
    return uri


def no_intent(text: str) -> str:
    """None: queries have the intents that they name."""
    return ""


@dataclass(frozen=True)
class Words:
    """The words of an entry, for signals that count them; queries become words in the same way."""

    text: Callable[[Entry], str] = content
    """The text that is read of an entry."""
    split: Callable[[str], list[str]] = terms
    """The words of a text."""

    def of(self, entry: Entry) -> list[str]:
        """The words of an entry."""
        return self.split(self.text(entry))


@dataclass(frozen=True)
class Reading:
    """What a system indexes and embeds, which entries it searches, and how queries become expressions.

    Recordings compare the functions by their names, so they must have one.
    """

    index: KeywordIndex | TextSearch
    """The full-text index: FTS5 over fields of the vault, or PostgreSQL's rules in memory."""
    recipe: str
    """The template of the text that is embedded, as in ``{title} {text}``."""
    match: MatchBuilder = words_or
    """A query as an FTS5 expression."""
    match_memory: MatchBuilder = words_or
    """The same for entries of kind memory, which are searched aside."""
    words: Words = field(default_factory=Words)
    """What TF-IDF counts."""
    valid_words: bool = False
    """Whether TF-IDF counts only what is valid at the query's clock, not all of the corpus."""
    corpus: Filters = EVERYTHING
    """The entries that are searched."""
    valid_only: bool = False
    """Whether entries are left out whose validity window does not hold the query's clock."""
    directory: Callable[[str], str] = itself
    """The URI whose abstract and overview stand for the entry at a URI."""
    classify: Classifier = no_intent
    """What a query wants, where it does not say so itself."""

    def __post_init__(self) -> None:
        named = (self.match, self.match_memory, self.words.text, self.words.split, self.directory, self.classify)
        for function in named:
            if getattr(function, "__name__", "<lambda>") == "<lambda>":
                raise ConfigError(
                    f"{function!r} has no name, and recordings compare functions by their names; use a def"
                )

    def identity(self) -> dict[str, Any]:
        """All of it but the embedded text, as JSON values for the fingerprint of a recording.

        The names of functions are part of recordings that people keep: renaming one orphans those.
        """
        return {
            "index": _index(self.index),
            "match": self.match.__name__,
            "match_memory": self.match_memory.__name__,
            "words": [self.words.text.__name__, self.words.split.__name__, self.valid_words],
            "searched": [str(self.corpus), self.valid_only],
            "directory": self.directory.__name__,
            "intents": self.classify.__name__,
        }


def _index(index: KeywordIndex | TextSearch) -> dict[str, Any]:
    if isinstance(index, TextSearch):
        return {"text": index.text.__module__, "tokenizer": "tsearch english"}
    return {"fields": list(index.fields), "tokenizer": index.tokenizer}
