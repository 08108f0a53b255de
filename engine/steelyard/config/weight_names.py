"""What the documents of systems call their weights, with our names of the terms, for files and `--weight`."""

from __future__ import annotations

from collections.abc import Mapping

WEIGHT_NAMES: Mapping[str, Mapping[str, str]] = {
    "moltnet": {"w_relevance": "rrf", "w_recency": "recency", "w_importance": "importance"},
    "soleri": {
        "semantic": "tfidf",
        "vector": "cosine",
        "severity": "severity",
        "temporalDecay": "recency",
        "tagOverlap": "tags",
        "domainMatch": "domain",
    },
}
"""By system. They stand here and not with the systems, because weights files are read without any system."""
