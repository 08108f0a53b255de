"""What kind of question a query is, and how similar an abstract must be before its directory is opened."""

from __future__ import annotations

import re

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
