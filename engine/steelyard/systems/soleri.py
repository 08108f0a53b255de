"""Soleri: keywords and vectors recall, six weighted signals rank; tiers of vaults; memories beside them."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

from steelyard.adaptive import AdaptiveRule
from steelyard.entry import Entry, Hit
from steelyard.filters import Filters
from steelyard.finish import Cut, Merge, Stage
from steelyard.fusion import parse_strategy
from steelyard.retrievers.tfidf import Words
from steelyard.stores.base import KeywordIndex
from steelyard.stores.federation import FederationRule
from steelyard.systems.base import SNIPPET, System, scan_result
from steelyard.text import as_written, soleri_ascii_or, soleri_or, soleri_tokens, utf16_length

FIELD_WEIGHTS = {"id": 5.0, "title": 10.0, "text": 3.0, "context": 1.0, "tags": 2.0}
SMALL = 50
MEMORY_SCORE = 0.5
FACTORS = {
    "semantic": "tfidf",
    "vector": "cosine",
    "severity": "severity",
    "temporalDecay": "recency",
    "tagOverlap": "tags",
    "domainMatch": "domain",
}
"""Soleri's names of the six signals, and ours."""

_PRIORS = "0.15*severity, 0.15*recency(half_life=365d{since}), 0.15*tags, 0.15*domain"
_HYBRID = f"weighted_sum(0.25*tfidf, 0.15*cosine, {_PRIORS})"
_KEYWORDS = f"weighted_sum(0.4*tfidf, {_PRIORS})"


def text(entry: Entry) -> str:
    """What the TF-IDF vocabulary is built from."""
    return " ".join((entry.title, entry.text, entry.context, " ".join(entry.tags)))


def finish(limit: int) -> tuple[Stage, ...]:
    """Memories join at 0.5; a list of fewer than 50 keyword results is kept whole if the cut dropped over half."""
    return (Merge("memory", MEMORY_SCORE), Cut(limit, all_below=SMALL, counting="fts"))


def finish_shipped(limit: int) -> tuple[Stage, ...]:
    """The guard counts vector-only candidates too and stands before the memories; the operation cuts again."""
    return (Cut(limit, all_below=SMALL), Merge("memory", MEMORY_SCORE), Cut(limit))


def result(hit: Hit) -> dict[str, Any]:
    """The documented full form; a memory has a score and no breakdown."""
    breakdown = {name: hit.signals.get(ours, 0.0) for name, ours in FACTORS.items()}
    return {"entry": hit.entry.to_json(), "score": hit.score, "breakdown": breakdown}


def examples(entry: Entry) -> tuple[str, str]:
    """An example and a counter-example, fields of Soleri's own."""
    return str(entry.extra.get("example") or ""), str(entry.extra.get("counter_example") or "")


def content_hash(entry: Entry) -> str:
    """40 hexadecimal digits of SHA-256, equal for entries that say the same, whatever their ids.

    Soleri's check for duplicates, of its code: compact JSON of the trimmed content, tags in order.
    """
    example, counter_example = examples(entry)
    content = {
        "counterExample": counter_example.strip(),
        "description": entry.text.strip(),
        "domain": entry.domain.strip().lower(),
        "example": example.strip(),
        "tags": sorted(entry.tags),
        "title": entry.title.strip(),
        "type": entry.type.strip(),
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:40]


def scan_shipped(hit: Hit) -> dict[str, Any]:
    """The scan of the real program: with severity, an ellipsis, and characters as JavaScript counts them."""
    entry = hit.entry
    more = "..." if utf16_length(entry.text) > SNIPPET else ""
    size = sum(map(utf16_length, (entry.title, entry.text, entry.context, entry.why, *examples(entry))))
    shown = scan_result(hit)
    return shown | {
        "severity": entry.severity,
        "snippet": shown["snippet"] + more,
        "tokenEstimate": math.ceil(size / 4),
    }


DOCUMENTED = System(
    name="soleri",
    profile="documented",
    index=KeywordIndex("soleri", tuple(FIELD_WEIGHTS), "porter unicode61"),
    match=soleri_or,
    match_memory=soleri_or,
    recipe="{title}\n{text}\n{context}",
    strategy=parse_strategy(_HYBRID.format(since="")),
    keywords_only=parse_strategy(_KEYWORDS.format(since="")),
    retrievers=("fts", "vector", "memory"),
    depth=lambda limit: max(3 * limit, 30),
    finish=finish,
    present=result,
    field_weights=FIELD_WEIGHTS,
    corpus=Filters.of({"kind": {"none": ["memory"]}}),
    valid_only=True,
    words=Words(text, soleri_tokens),
    weight_names=FACTORS,
    adaptive=AdaptiveRule(),
)

SHIPPED = replace(
    DOCUMENTED,
    profile="shipped",
    match=soleri_ascii_or,
    match_memory=as_written,
    strategy=parse_strategy(_HYBRID.format(since=", since=never")),
    keywords_only=parse_strategy(_KEYWORDS.format(since=", since=never")),
    finish=finish_shipped,
    scan=scan_shipped,
    filters={"vector": "none"},
    valid_words=True,
    federation=FederationRule(
        best_copy=True, per_tier=10, first_vectors=True, after_merge=("domain", "type", "severity")
    ),
    adaptive=AdaptiveRule(least=0.25, held=("cosine",)),
)
