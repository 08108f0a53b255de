"""system-spec-kit: vector, keywords and relations fused by reciprocal rank; intents, factors and re-ranking on
top.

`tokens`, `enhance` and `intents` read queries, `forms` shows results, `environment` resolves its
variables, `foreign` reads and writes its own file of weights. This module puts its three profiles together.
"""

from __future__ import annotations

from dataclasses import replace

from steelyard.finish import Cut, Merge, Rescore, Stage
from steelyard.fusion import parse_strategy
from steelyard.memory.filters import Filters
from steelyard.retrievers.reading import Reading, Words, as_asked
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import Searching, Showing, System
from steelyard.systems.spec_kit.enhance import enhanced
from steelyard.systems.spec_kit.environment import resolve
from steelyard.systems.spec_kit.forms import result, result_within
from steelyard.systems.spec_kit.intents import (
    INTENTS,
    INTENTS_JS,
    classify,
    classify_js,
    classify_shipped,
    intent,
    intent_js,
    intent_shipped,
)
from steelyard.systems.spec_kit.tokens import (
    INDEXED,
    any_word,
    every_word_js,
    indexed_text,
    tokens_documented,
    tokens_js,
    tokens_shipped,
)

FIELDS = ("title", "tags", "uri", "text")
FACTORS = (
    "promised, document_type, 0*spec_level, 0*importance_tier, "
    "0*decay, 0*retrievability, 0*popularity, 0*corrections"
)
"""The first two act; the others are there to be switched on, and to be tuned."""
_FUSED = "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"

INTENT_WEIGHTS = {
    "add_feature": (0.3, 0.4, 0.3),
    "fix_bug": (0.5, 0.2, 0.3),
    "refactor": (0.2, 0.3, 0.5),
    "security_audit": (0.1, 0.5, 0.4),
    "understand": (0.2, 0.3, 0.5),
    "find_spec": (0.1, 0.5, 0.4),
    "find_decision": (0.1, 0.5, 0.4),
}
"""Recency, importance and similarity of the code's seven intents."""


_SIMILARITY = (
    "comb_max(weighted_sum(0*vector, 0*constitutional, 0.5*cosine, 0.5*one), "
    "weighted_sum(0.01*fts), normalize=none)"
)
"""(1 + cosine) / 2 of what vectors found; a hundredth of the keyword score of what only keywords found.

A sum ranks what the retrievers in it found, whatever their weights.
"""


def _by_intent(weights: tuple[float, float, float]) -> str:
    """One intent's re-sorting, by what is new among the rows, important and similar."""
    recency, importance, similarity = weights
    newest = "weighted_sum(1*created, normalize=minmax)"
    return f"weighted_sum({recency}*{newest}, {importance}*importance, {similarity}*{_SIMILARITY})"


RESORT = "by_intent(default={}, {})".format(
    _by_intent(INTENT_WEIGHTS["understand"]),
    ", ".join(f"{name}={_by_intent(weights)}" for name, weights in INTENT_WEIGHTS.items()),
)


def finish_shipped(limit: int) -> tuple[Stage, ...]:
    """The fused list is cut, at most 5 constitutional entries join it where it has none, and all is sorted again.

    So there may be 5 results more than the limit.
    """
    return (Cut(limit), Merge("constitutional", score=0.0, if_none=5), Rescore(parse_strategy(RESORT)))


DOCUMENTED = System(
    name="spec_kit",
    profile="documented",
    reading=Reading(
        index=KeywordIndex("spec_kit", FIELDS, "unicode61"),
        recipe="{title}\n{text}",
        match=any_word,
        bm25_words=Words(indexed_text, tokens_documented, INDEXED, whole=True),
        classify=intent,
        confidence=lambda text: classify(text).confidence,
        intents=INTENTS,
        rewrite=enhanced,
    ),
    searching=Searching(
        strategy=parse_strategy(f"boost({_FUSED}, {FACTORS})"),
        retrievers=("vector", "bm25", "fts", "graph"),
        depth=lambda limit: max(limit, 20),
        limit=20,
        field_weights=dict.fromkeys(FIELDS, 1.0),
        dispensable=frozenset({"bm25", "fts", "graph"}),
        instead={"bm25": "fts"},
    ),
    showing=Showing(result, within=result_within),
    environment=resolve,
)

SHIPPED = replace(
    DOCUMENTED,
    profile="shipped",
    reading=replace(
        DOCUMENTED.reading,
        bm25_words=Words(indexed_text, tokens_shipped, INDEXED, whole=True),
        classify=intent_shipped,
        confidence=lambda text: classify_shipped(text).confidence,
        rewrite=as_asked,
        hidden={"vector": Filters.of({"importance_tier": {"none": ["constitutional", "deprecated"]}})},
    ),
    searching=replace(
        DOCUMENTED.searching,
        strategy=parse_strategy("rrf(vector, 0.8*fts, k=60, bonus=each(0.1))"),
        retrievers=("vector", "fts", "constitutional"),
        parameters={"vector": {"lift": 0.1}},
        finish=finish_shipped,
        dispensable=frozenset({"fts"}),
        instead={},
    ),
)

JS = replace(
    DOCUMENTED,
    profile="js",
    reading=replace(
        DOCUMENTED.reading,
        match=every_word_js,
        bm25_words=Words(indexed_text, tokens_js, INDEXED, least=10, whole=True),
        classify=intent_js,
        confidence=lambda text: classify_js(text).confidence,
        intents=INTENTS_JS,
        rewrite=as_asked,
    ),
    searching=replace(
        DOCUMENTED.searching,
        strategy=parse_strategy(
            "rrf(vector, weighted_sum(0.5*fts, 0.5*bm25, normalize=max), k=60, bonus=once(0.1))"
        ),
        retrievers=("vector", "fts", "bm25"),
        depth=lambda limit: 2 * limit,
        dispensable=frozenset({"bm25", "fts"}),
        instead={},
    ),
)
