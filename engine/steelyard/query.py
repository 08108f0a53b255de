"""What a search asks, and the door that the text of a query passes through once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.entry import read_fields
from steelyard.errors import ConfigError, Fault, shown
from steelyard.fields import Reader, parse_time, read_text, read_texts
from steelyard.filters import EVERYTHING, Filters


@dataclass(frozen=True, slots=True)
class Query:
    """One request.

    `text` is what was asked. `matched` is the text that keywords match; left out, it is the text as asked,
    cleaned. `rewritten` is the text that is embedded; left out, it is the text as asked. `asked_at` (seconds UTC)
    is the clock; `group` ties queries that share a cause.
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
    matched: str | None = None
    rewritten: str | None = None

    @property
    def embedded(self) -> str:
        """The text that is embedded."""
        return self.text if self.rewritten is None else self.rewritten

    @property
    def keywords(self) -> str:
        """The text that keywords match; ConfigError when it is none that can be searched, see `clean_query`."""
        return clean_query(self.text) if self.matched is None else self.matched


QUERY_FIELDS: dict[str, Reader] = {
    "id": read_text,
    "text": read_text,
    "asked_at": parse_time,
    "intent": read_text,
    "category": read_text,
    "group": read_text,
    "tags": read_texts,
    "domain": read_text,
    "split": read_text,
}


def read_query(record: Mapping[str, Any], file: str = "query", line: int = 0) -> tuple[Query | None, list[Fault]]:
    """Build a Query from a JSON object with its optional `filter`; None when faulty."""
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
"""Far beyond any question; the time of FTS5's bm25 grows with the square of the query's words."""

_CONTROLS = dict.fromkeys((*range(32), 127), " ")


def clean_query(text: str) -> str:
    """The text as it is searched: control characters become blanks.

    Raises ConfigError when nothing is left, for more than `MAX_WORDS` words, or when it is not valid Unicode.
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
    """How many words any of the query builders could make of the text.

    >>> count_words("jwt-style tokens ?")
    3
    """
    return max(len(text.split()), len(re.findall(r"\w+", text)))


def is_blank(text: str) -> bool:
    """Whether nothing but white space and control characters is there."""
    return not text.translate(_CONTROLS).strip()
