"""Soleri: finds by keywords and vectors, ranks by six weighted signals, over tiers of vaults and memories."""

import math
import re
from dataclasses import replace

from steelyard.config import WEIGHT_NAMES
from steelyard.finish import Cut, Merge
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import Filters
from steelyard.retrievers.kinds import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.stores.federation import FederationRule
from steelyard.stores.postings import TokenSettings
from steelyard.systems.base import SNIPPET, ResultForms, SearchSettings, System, record_of, scan_result

FIELD_WEIGHTS = {"id": 5.0, "title": 10.0, "text": 3.0, "context": 1.0, "tags": 2.0}
FACTORS = WEIGHT_NAMES["soleri"]
"""Soleri's names of the six signals, with ours."""

_PRIORS = "0.15*severity, 0.15*recency(half_life=365d{since}), 0.15*tags, 0.15*domain"
_HYBRID = f"weighted_sum(0.25*tfidf, 0.15*cosine, {_PRIORS})"
_KEYWORDS = f"weighted_sum(0.4*tfidf, {_PRIORS})"
STOP_WORDS = frozenset(
    """a about all an and are as at be because been both but by can could did do does each else every few
    for from had has have he her him his how i if in into is it its just may me might more most must
    my need no not of on only or other our out same shall she should so some such than that the
    their them then these they this those to too up us very was we were what when where which who
    whom why will with would you your""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
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
    pieces = (_NOT_ASCII_WORD.sub("", piece) for piece in text.lower().split() if utf16_length(piece) >= 2)
    return " OR ".join(filter(None, pieces)) or as_written(text)


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
    breakdown = {name: hit.signals.get(ours, 0.0) for name, ours in FACTORS.items()}
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


DOCUMENTED = System(
    name="soleri",
    reading=Reading(
        index=KeywordIndex("soleri", tuple(FIELD_WEIGHTS), "porter unicode61"),
        recipe="{title}\n{text}\n{context}",
        match=soleri_or,
        match_memory=soleri_or,
        words=TokenSettings(text, soleri_tokens, ("title", "text", "context", "tags")),
        corpus=Filters.of({"kind": {"none": ["memory"]}}),
        valid_only=True,
    ),
    searching=SearchSettings(
        strategy=parse_strategy(_HYBRID.format(since="")),
        keywords_only=parse_strategy(_KEYWORDS.format(since="")),
        retrievers=("fts", "vector", "memory"),
        depth=lambda limit: max(3 * limit, 30),
        # Memories are added at 0.5; with fewer than 50 keyword results, a cut that drops over half is not made.
        finish=lambda limit: (Merge("memory", score=0.5), Cut(limit, all_below=50, counting="fts")),
        field_weights=FIELD_WEIGHTS,
    ),
    showing=ResultForms(result),
    adaptive={},
)

SHIPPED = replace(
    DOCUMENTED,
    profile="shipped",
    reading=replace(DOCUMENTED.reading, match=soleri_ascii_or, match_memory=as_written, valid_words=True),
    searching=replace(
        DOCUMENTED.searching,
        strategy=parse_strategy(_HYBRID.format(since=", since=never")),
        keywords_only=parse_strategy(_KEYWORDS.format(since=", since=never")),
        # The guard of the cut acts on all candidates, then memories are added, and it is cut again.
        finish=lambda limit: (Cut(limit, all_below=50), Merge("memory", score=0.5), Cut(limit)),
        filters={"vector": "none"},
    ),
    showing=replace(DOCUMENTED.showing, scan=scan_shipped),
    federation=FederationRule(
        best_copy=True, per_tier=10, first_vectors=True, after_merge=("domain", "type", "severity")
    ),
    adaptive={"least": 0.25, "held": ("cosine",)},
)
