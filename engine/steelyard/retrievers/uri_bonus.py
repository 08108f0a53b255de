"""What a result's place and first words add to its score (Cortex-Mem 0bbcdb1, search/vector_engine.rs)."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.kinds import BuildContext, Scorer, ScorerKind

TABLE: dict[str, Any] = STRICT_JSON.decode(
    resources.files(__package__).joinpath("uri_bonus.json").read_text("utf-8")
)
READ = 200
"""Characters of a text that are looked at: those that the program shows."""


def keywords(text: str) -> list[str]:
    """The words of more than two characters in lower case, sorted, each once, without some question words."""
    words = {word.lower() for word in re.split(r"[^\w+#]|_", text) if len(word) > 2}
    return sorted(words.difference(TABLE["not_keywords"]))


def entities(text: str) -> list[str]:
    """The words that begin with a capital, sorted, each once, without the signs around them."""
    words = {re.sub(r"^[^\w-]+|[^\w-]+$", "", word) for word in text.split()}
    return sorted(word for word in words if len(word) > 1 and word[0].isupper())


def bonus(query: Query, entry: Entry) -> float:
    """What an entry's score gets for a query.

    A file gets 0.12 and a directory loses it. Each keyword among the first 200 characters adds 0.03, up to four,
    and each word with a capital 0.05, up to three. The rest is a table of folders, by the query's intent.
    """
    uri, text = (entry.uri or entry.id).lower(), (entry.text or entry.l1 or entry.l0)[:READ].lower()
    total = float(TABLE["file" if (entry.uri or entry.id).endswith(".md") else "directory"])
    for name, words in (("keywords", keywords(query.text)), ("entities", entities(query.text))):
        each, most = TABLE[name]
        total += each * min(most, sum(word.lower() in text for word in words))
    by_intent = (TABLE[name].get(query.intent, {}) for name in ("paths", "words"))
    return total + sum(map(_first, (TABLE["collections"], *by_intent), (uri, uri, text)))


def _first(rules: Mapping[str, float], text: str) -> float:
    """What the first pattern that is found in a text adds."""
    return next((added for pattern, added in rules.items() if re.search(pattern, text)), 0.0)


def _build(parts: BuildContext) -> Scorer:
    def score(query: Query, ids: Sequence[str]) -> Floats:
        entries = {entry.id: entry for entry in parts.store.get(ids, ("uri", "text", "l0", "l1"))}
        return np.array([bonus(query, entries[id_]) for id_ in ids], dtype=np.float64)

    return score


URI_BONUS = ScorerKind(name="uri_bonus", build=_build)
