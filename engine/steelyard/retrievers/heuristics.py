"""Scores that programs give entries by their words and places, whatever else was found."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.files import data
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.kinds import BuildContext, Scorer, ScorerKind

TABLE: dict[str, Any] = data(__package__, "heuristics.json")
"""What Cortex-Mem (0bbcdb1, search/vector_engine.rs) adds, and EchoVault (since c4348a6) multiplies by."""
remembered = lru_cache(256)  # of a query: every entry asks
READ = 200
"""Characters of a text that are looked at: those that the program shows."""


@remembered
def keywords(text: str) -> tuple[str, ...]:
    """The words of more than two characters in lower case, sorted, each once, without some question words."""
    words = {word.lower() for word in re.split(r"[^\w+#]|_", text) if len(word) > 2}
    return tuple(sorted(words.difference(TABLE["not_keywords"])))


@remembered
def entities(text: str) -> tuple[str, ...]:
    """The words that begin with a capital, sorted, each once, without the signs around them."""
    words = {re.sub(r"^[^\w-]+|[^\w-]+$", "", word) for word in text.split()}
    return tuple(sorted(word for word in words if len(word) > 1 and word[0].isupper()))


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


def factor(query: Query, entry: Entry) -> float:
    """What an entry's score is multiplied by: what agents save to test a memory ranks low.

    That is 0.55 or 0.75 for a word anywhere in the title, the category or the tags; the first in the table counts.
    It is 1 for queries that ask for such entries.
    """
    if not {*TABLE["asks_for_tests"]}.isdisjoint(re.findall(r"\w+", query.keywords.lower())):
        return 1.0
    return _first(TABLE["tests"], " ".join((entry.title, entry.category, *entry.tags)).lower()) or 1.0


def _of_entries(score: Callable[[Query, Entry], float], *fields: str) -> Callable[[BuildContext], Scorer]:
    """Builds the scorer of each entry by some of its fields; of one that is gone it is 1."""

    def build(parts: BuildContext) -> Scorer:
        def scores(query: Query, ids: Sequence[str]) -> Floats:
            found = {entry.id: score(query, entry) for entry in parts.store.get(ids, fields)}
            return np.array([found.get(id_, 1.0) for id_ in ids], dtype=np.float64)

        return scores

    return build


URI_BONUS = ScorerKind(name="uri_bonus", build=_of_entries(bonus, "uri", "text", "l0", "l1"))
HOUSEKEEPING = ScorerKind(
    name="housekeeping", build=_of_entries(factor, "title", "category", "tags"), ends=(0.0, 1.0)
)
