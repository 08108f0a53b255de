"""What kind of question a query is, and how similar an abstract must be before its directory is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.finish import AtLeast, Cut, Stage
from steelyard.fusion import Expr, parse_strategy
from steelyard.memory.entry import Entry, Hit

if TYPE_CHECKING:
    from steelyard.results import SearchResult


GENERAL, FACTUAL, SEARCH, RELATIONAL, TEMPORAL = "general", "factual", "search", "relational", "temporal"
ENTITY = "entity"
"""The shipped program tests for the name of a thing beside the intent; it wins over the intent."""

THRESHOLDS = {FACTUAL: 0.4, SEARCH: 0.5, RELATIONAL: 0.5, TEMPORAL: 0.5, GENERAL: 0.5}
"""The document's table."""
SHIPPED_THRESHOLDS = {ENTITY: 0.4, FACTUAL: 0.4, SEARCH: 0.4, RELATIONAL: 0.4, TEMPORAL: 0.45, GENERAL: 0.5}
"""The real program's."""

_RULES = (
    (FACTUAL, re.compile(r"^(what is|what's|when did|who is|how to|define)\b")),
    (SEARCH, re.compile(r"^(find|look for|search|show me|list)\b")),
    (
        RELATIONAL,
        re.compile(
            r"\bhow (is|are) .+ (related|connected) (to|with)\b"
            r"|\b(vs|versus|compared to|difference between|related to|connected with)\b"
        ),
    ),
    (TEMPORAL, re.compile(r"\b(when|recent|latest|yesterday|last|ago)\b")),
)
"""The examples of the table, in its order; the words of the real program fill it up, as whole words."""

_TEMPORAL = ("when", "recent", "latest", "yesterday", "last", "ago")
_FACTUAL = ("what is", "who is", "how to", "define")
_RELATIONAL = (" vs ", " versus ", "compared to", "difference between", "related to", "connected with")
_SEARCH = ("find", "search", "show me", "list")
_QUESTION_WORDS = frozenset("what when where who why how is are do does".split())  # noqa: SIM905 -- reads better
_CJK = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff]{2,4}")


def intent_of(text: str) -> str:
    """The intent that the document's table gives a query; the first row that fits.

    >>> [intent_of(q) for q in ("When did we deploy?", "Look for tokens", "last week's notes", "user's password")]
    ['factual', 'search', 'temporal', 'general']
    """
    lowered = text.lower().strip()
    return next((intent for intent, rule in _RULES if rule.search(lowered)), GENERAL)


def intent_shipped(text: str) -> str:
    """The intent of the real program, which looks for temporal words first, also inside other words.

    >>> [intent_shipped(q) for q in ("when did we deploy", "elastic search", "look for tokens")]
    ['temporal', 'temporal', 'general']
    """
    lowered = text.lower()
    if any(word in lowered for word in _TEMPORAL):
        return TEMPORAL
    if lowered.startswith(_FACTUAL):
        return FACTUAL
    if any(words in lowered for words in _RELATIONAL):
        return RELATIONAL
    return SEARCH if lowered.startswith(_SEARCH) else GENERAL


def is_entity(text: str) -> bool:
    """Whether the real program takes a query for the name of a thing, whose threshold is 0.4.

    One or two words of at most 20 characters that begin with a capital and hold no question word, or one word
    of two to four Chinese characters.

    >>> [is_entity(q) for q in ("Alice Smith", "alice", "What now")]
    [True, False, False]
    """
    words = text.split()
    if len(words) == 1 and _CJK.fullmatch(words[0]):
        return True
    short = 0 < len(words) <= 2 and len(text) <= 20
    return short and text[0].isupper() and not _QUESTION_WORDS & {word.lower() for word in words}


def classify_shipped(text: str) -> str:
    """What decides the threshold of the real program: entity, or else the intent."""
    return ENTITY if is_entity(text) else intent_shipped(text)


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


FULL = parse_strategy("comb_max(l0, l1, l2, normalize=none)")
"""Everything by its best layer."""
LEAST = 0.5
"""How similar results are at least, where nobody asks for another number."""


def direct(threshold: float | None, limit: int) -> tuple[Expr, tuple[Stage, ...]]:
    """The strategy and the stages of a direct search."""
    return FULL, (AtLeast(LEAST if threshold is None else threshold), Cut(limit))


@dataclass(frozen=True)
class LayerRow:
    """A layer of an entry that is similar enough: l0, l1 or l2, its cosine and its text."""

    entry: Entry
    layer: str
    score: float
    text: str


def rows(found: SearchResult) -> list[LayerRow]:
    """The results of a direct search, best first, as many as its limit."""
    least = max(stage.score for stage in found.finish if isinstance(stage, AtLeast))
    limit = min(stage.limit for stage in found.finish if isinstance(stage, Cut))
    every = [row for hit in found.hits for row in _layers(hit, found) if row.score >= least]
    return sorted(every, key=lambda row: (-row.score, uri_or_id(row.entry).encode(), row.layer))[:limit]


def _layers(hit: Hit, found: SearchResult) -> Iterator[LayerRow]:
    """A hit once for each of its layers; the cosine of one that it lacks is NaN, which reaches nothing."""
    entry, columns = hit.entry, found.table.columns
    for layer, text in (("l0", entry.l0), ("l1", entry.l1), ("l2", entry.text)):
        if layer in columns:
            yield LayerRow(entry, layer, float(columns[layer][found.row(hit)]), text)


def uri_or_id(entry: Entry) -> str:
    """The URI of an entry, or its id where it has none."""
    return entry.uri or entry.id


def rows_shown(found: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows with their snippets, and with their texts where these are asked for."""
    shown = []
    for row in rows(found):
        part = snippet(row.text, found.query.text)
        excerpt = {"snippet": part.text, "highlights": [list(span) for span in part.highlights]}
        shown.append(_shown(row) | excerpt | ({"content": row.text} if content else {}))
    return shown


def rows_shown_shipped(found: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows as the real program shows them, always with their texts."""
    return [_shown(row) | {"snippet": beginning(row.text), "content": row.text} for row in rows(found)]


def _shown(row: LayerRow) -> dict[str, object]:
    return {"uri": uri_or_id(row.entry), "score": row.score, "layer": row.layer}
