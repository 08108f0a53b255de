"""The part of a text that is shown for a query, and where the query's words stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

CONTEXT = 100
"""Characters shown before and after a match."""
LONGEST = 200
"""Characters of a snippet."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a text, and the half-open spans of it that are the query's words, in ascending order."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: str) -> Snippet:
    """At most 200 characters of the text around the first match of the query, with its words as highlights.

    The match is the query as a whole, else the first of its words, whatever their case. 100 characters
    stand before and after it, fewer where the whole would be longer than 200. A text without a match is
    shown from its beginning. (Document, section 6.1.)

    >>> snippet("We rotate keys every week.", "keys").highlights
    ((10, 14),)
    """
    span = _match(text, query)
    if span is None:
        return Snippet(text[:LONGEST])
    begin, end = span
    room = max(0, LONGEST - (end - begin))
    before = max(0, min(begin, CONTEXT, room // 2 if end + CONTEXT < len(text) else room))
    first = max(0, begin - before)
    part = text[first : min(len(text), end + CONTEXT, first + LONGEST)]
    return Snippet(part, _highlights(part, query))


def snippet_shipped(text: str, query: str) -> str:
    """What the real program shows: a window around the whole query, with ``...`` in front where it was cut.

    It may be longer than 200 characters, and a query whose words stand apart has no match.
    """
    start = text.lower().find(query.lower())
    if start < 0:
        return beginning(text)
    first = max(0, start - CONTEXT)
    return ("..." if first else "") + text[first : min(len(text), start + len(query) + CONTEXT)]


def beginning(text: str) -> str:
    """The first 200 characters, with ``...`` where there are more."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _match(text: str, query: str) -> tuple[int, int] | None:
    """Where the query stands, else the first of its words; None without either."""
    whole = query.strip()
    match = re.search(re.escape(whole), text, re.IGNORECASE) if whole else None
    if match is None or len(whole) > LONGEST:
        spans = _highlights(text, query)
        return spans[0] if spans else None
    return match.span()


def _highlights(text: str, query: str) -> tuple[tuple[int, int], ...]:
    words = {word.lower() for word in _WORD.findall(query)}
    return tuple(match.span() for match in _WORD.finditer(text) if match.group().lower() in words)
