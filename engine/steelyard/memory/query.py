"""Queries, and the check and cleaning of their text, which happens once for each query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.base.errors import ConfigError, Fault, shown
from steelyard.base.fields import Reader, parse_time, read_flag, read_text, read_texts
from steelyard.memory.entry import read_fields
from steelyard.memory.filters import EVERYTHING, Filters


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a search or a data set: the text as the user wrote it, and the scope in `filters`.

    `asked_at` is the query's clock, seconds UTC; None for that of the searcher or the data set. `intent` chooses
    the strategy where a configuration has one for each, `confidence`, 0..1, is how sure the system's classifier is
    of it (None where it was given, or has no measure). Reports break results down by `category`; queries of one
    `group` share a cause, and statistics treat them as dependent. Signals compare `tags` and `domain` with those
    of entries. `split` is the part of the data set that it belongs to. `answerable` is False where a person or a
    source says that nothing in the memory answers it. Keywords match `matched`, None for the cleaned text;
    `rewritten` is embedded, None for the text.
    """

    text: str
    id: str = ""
    filters: Filters = EVERYTHING
    asked_at: float | None = None
    intent: str = ""
    category: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    split: str = ""
    answerable: bool = True
    matched: str | None = None
    rewritten: str | None = None
    confidence: float | None = None

    @property
    def embedded(self) -> str:
        """The text that is embedded."""
        return self.text if self.rewritten is None else self.rewritten

    @property
    def keywords(self) -> str:
        """The text that keywords match; ConfigError when it cannot be searched (see `clean_query`)."""
        return clean_query(self.text) if self.matched is None else self.matched


_NAMES = ("id", "text", "asked_at", "intent", "category", "group", "tags", "domain", "split", "answerable")
_TYPED: dict[str, Reader] = {"asked_at": parse_time, "tags": read_texts, "answerable": read_flag}
QUERY_FIELDS: dict[str, Reader] = dict.fromkeys(_NAMES, read_text) | _TYPED


def read_query(
    record: Mapping[str, object], file: str = "query", line: int = 0
) -> tuple[Query | None, list[Fault]]:
    """Build a query from a JSON object with its optional `filter`; None, with faults, when it is wrong."""
    values, faults = read_fields(record, QUERY_FIELDS, ("id", "text"), file, line)
    filters = EVERYTHING
    scope = record.get("filter")
    if scope is not None:
        try:
            filters = Filters.of(scope if isinstance(scope, Mapping) else {"filter": scope})
        except ConfigError as error:
            faults.append(Fault(file, line, "filter", shown(scope), str(error), 'Write {"field": "value"}'))
    return (None, faults) if faults else (Query(**values, filters=filters), [])


MAX_WORDS = 1000
"""More than any query needs; the time of FTS5's bm25 grows with the square of the number of words."""

_CONTROLS = dict.fromkeys((*range(32), 127), " ")


def clean_query(text: str) -> str:
    """Clean the text of a query for searching: control characters become blanks.

    Raises ConfigError when nothing is left, for more than `MAX_WORDS` words, and for invalid Unicode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"query {shown(text)} is not valid Unicode; send it as UTF-8") from None
    if is_blank(text):
        raise ConfigError(f"query {shown(text)} is empty; type at least one word")
    if (words := count_words(text)) > MAX_WORDS:
        raise ConfigError(f"query {shown(text)} has {words} words, more than {MAX_WORDS}; shorten it")
    return text.translate(_CONTROLS)


def count_words(text: str) -> int:
    """Count the words that a query builder could make of the text, at most.

    >>> count_words("jwt-style tokens ?")
    3
    """
    return max(len(text.split()), len(re.findall(r"\w+", text)))


def is_blank(text: str) -> bool:
    """Whether the text consists of white space and control characters."""
    return not text.translate(_CONTROLS).strip()
