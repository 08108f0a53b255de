"""Soleri: finds by keywords and vectors, ranks by six weighted signals, over tiers of vaults and memories."""

import math
import re
from collections.abc import Iterable

from steelyard.config import WEIGHT_NAMES
from steelyard.memory.entry import Entry, Hit
from steelyard.stores.postings import TokenSettings
from steelyard.systems.base import SNIPPET, WORD_LISTS, generations, record_of, scan_result

FACTORS = WEIGHT_NAMES["soleri"]
"""Soleri's names of the six signals, and of the seventh that the newest program has, with ours."""

STOP_WORDS = frozenset(WORD_LISTS["soleri"].split())
"""The 95 words that Soleri's tokenizer drops."""

_LETTERS = re.compile(r"[^\W_]{2,}")
_NOT_TOKEN = re.compile(r"[^a-z0-9\s-]")
_NOT_ASCII_WORD = re.compile(r"[^a-z0-9]")


def soleri_tokens(text: str) -> list[str]:
    """Split text into lower-cased tokens of at least three of a-z, 0-9 and hyphen, without stop words or stemming.

    >>> soleri_tokens("The full-text search of v1.2.3")
    ['full-text', 'search']
    """
    words = _NOT_TOKEN.sub(" ", text.lower()).split()
    return [token for token in words if len(token) > 2 and token not in STOP_WORDS]


def soleri_or(text: str) -> str:
    """Join the lower-cased terms of two or more characters by OR, without stop words.

    Letters of any script are kept. A query that consists of stop words is searched by all its terms.

    >>> soleri_or("how does JWT validation work")
    'jwt OR validation OR work'
    """
    words = _LETTERS.findall(text.lower())
    return " OR ".join([word for word in words if word not in STOP_WORDS] or words)


def soleri_ascii_or(text: str) -> str:
    """Join blank-separated pieces of two or more characters, reduced to a-z and 0-9, by OR, like the real program.

    When nothing is left, the text itself is the expression; see `as_written`.
    """
    return _ascii_or(text, text.lower().split())


def soleri_parts_or(text: str) -> str:
    """Do the same for pieces that hyphens, underscores, dots and slashes separate, too.

    >>> soleri_parts_or("the user_id of v1.2")
    'the OR user OR id OR of OR v1'
    """
    return _ascii_or(text, re.split(r"[\s\-_./\\]+", text.lower()))


def _ascii_or(text: str, pieces: Iterable[str]) -> str:
    kept = (_NOT_ASCII_WORD.sub("", piece) for piece in pieces if utf16_length(piece) >= 2)
    return " OR ".join(filter(None, kept)) or as_written(text)


def as_written(text: str) -> str:
    """Use the text itself as the FTS5 expression: blanks mean AND, and a syntax error finds nothing."""
    return text


def utf16_length(text: str) -> int:
    """Count characters as JavaScript does, in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def text(entry: Entry) -> str:
    """Return the text that the TF-IDF vocabulary is built from."""
    return " ".join((entry.title, entry.text, entry.context, " ".join(entry.tags)))


def result(hit: Hit) -> dict[str, object]:
    """Show the documented full form, times as ISO 8601; the breakdown of a memory is all zeros."""
    known = {name: ours for name, ours in FACTORS.items() if ours != "graph" or ours in hit.signals}
    breakdown = {name: hit.signals.get(ours, 0.0) for name, ours in known.items()}
    return {"entry": record_of(hit.entry), "score": hit.score, "breakdown": breakdown}


def examples(entry: Entry) -> tuple[str, str]:
    """Return the example and the counter-example of an entry, fields that only Soleri has."""
    return str(entry.extra.get("example") or ""), str(entry.extra.get("counter_example") or "")


def scan_shipped(hit: Hit) -> dict[str, object]:
    """Summarise a result like the real program: with severity, an ellipsis, and lengths as in JavaScript."""
    entry, shown = hit.entry, scan_result(hit)
    size = sum(map(utf16_length, (entry.title, entry.text, entry.context, entry.why, *examples(entry))))
    snippet = shown["snippet"] + ("..." if utf16_length(entry.text) > SNIPPET else "")
    return shown | {"severity": entry.severity, "snippet": snippet, "tokenEstimate": math.ceil(size / 4)}


WORDS = TokenSettings(text, soleri_tokens, ("title", "text", "context", "tags"))
PROFILES = DOCUMENTED, SHIPPED, NEWEST = generations("soleri", globals())
