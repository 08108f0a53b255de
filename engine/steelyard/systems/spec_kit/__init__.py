"""system-spec-kit: three sources fused by reciprocal rank; intents, factors and re-ranking on top.

`words` reads queries, `enhancement` rewrites them; this module shows results, resolves environment variables, and
puts its profiles together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.base.errors import ConfigError, quote
from steelyard.base.files import data
from steelyard.config import RerankConfig, SearchConfig
from steelyard.finish import Rerank
from steelyard.fusion import RECIPROCAL, Linear, parse_strategy
from steelyard.memory.entry import Hit
from steelyard.signals import PRIORS
from steelyard.systems.base import generations, shown_fields
from steelyard.systems.spec_kit import words
from steelyard.systems.spec_kit.enhancement import enhanced as enhanced
from steelyard.table.signal_table import NO_FACTS, RERANK

if TYPE_CHECKING:
    from steelyard.results import SearchResult

SETTINGS = data(__package__, "settings.json")
"""Environment variables, and how the shipped program sorts again by intent: recency, importance and similarity.

Similarity is (1 + cosine) / 2 of what vectors found; a hundredth of the keyword score of what only keywords found.
A sum ranks what the retrievers in it found, whatever their weights.
"""


def _by_intent(cases: Mapping[str, str]) -> str:
    """Each intent's strategy; that of the fallback where nothing is known of the query."""
    named = ", ".join(f"{name}={text}" for name, text in cases.items())
    return f"by_intent(default={cases[words.FALLBACK]}, {named})"


FACTORS: str = SETTINGS["factors"]
"""The first two act; the others are there to be switched on, and to be tuned."""
FUSED = f"boost(rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1)), {FACTORS})"
NEWEST_STRATEGY = _by_intent(words.NEWEST["strategies"])
SORTING = f"rescore({_by_intent(SETTINGS['shipped_sorting'])})"

SNIPPET = 200
"""Ours: the document names no length."""
RANKS = {"vectorRank": "vector", "bm25Rank": "bm25", "ftsRank": "fts", "graphRank": "graph"}
"""The document's names of the sources' ranks, and ours of FTS5's, which is shown where FTS5 was asked."""


def result(hit: Hit) -> dict[str, object]:
    """What a hit alone has; `result_within` adds what depends on the whole result."""
    form = (
        "id title specFolder=project filePath=uri documentType=document_type memoryType=memory_type "
        "importanceTier=importance_tier triggerPhrases=tags createdAt=created_at score"
    )
    return shown_fields(hit, form)


def result_within(hit: Hit, full: SearchResult) -> dict[str, object]:
    """The documented result: its RRF score where there was one, which sources found it at which ranks, a snippet.

    The RRF score has its bonus, and stands before any factor and any sorting again. A re-ranked result has the
    re-ranker's score, the length penalty and the product of both, by which it stands where it does; its `score` is
    that before, as of the results behind it.
    """
    table, row = full.table, full.row(hit)
    asked = {name: source for name, source in RANKS.items() if source != "fts" or source in table.columns}
    places = {name: full.place(hit, source) for name, source in asked.items()}
    sources = [name.removesuffix("Rank") for name, place in places.items() if place is not None]
    fusion, scores = full.fusion
    about = fusion.describe()
    reciprocal = isinstance(about, Linear) and about.scale == RECIPROCAL and not np.isnan(scores[row])
    shown = result(hit) | places
    shown |= {
        "rrfScore": float(scores[row]) if reciprocal else None,
        "sources": sources,
        "sourceCount": len(sources),
        "intent": full.query.intent,
        "intentConfidence": full.query.confidence,
        "snippet": snippet_around(hit.entry.text, full.query.keywords),
    }
    again = table.columns.get(RERANK)
    if again is None or np.isnan(again[row]):
        return shown
    penalty = float(PRIORS["length"](table, {}).values[row]) if table.entry_facts is not NO_FACTS else 1.0
    shown |= {"crossEncoderScore": float(again[row]), "lengthPenalty": penalty}
    if isinstance([stage for stage in full.finish if stage.RESCORES][-1], Rerank):
        shown["score"] = float(full.fused[row])
    return shown | {"finalScore": float(again[row]) * penalty}


def snippet_around(text: str, words: str) -> str:
    """At most 200 characters of a text, from a little before the first word of the query that it holds."""
    lower = text.lower()
    places = [place for word in words.lower().split() if len(word) > 2 and (place := lower.find(word)) >= 0]
    begin = max(0, min(places, default=0) - SNIPPET // 4)
    return text[begin : begin + SNIPPET]


FLAGS = dict.fromkeys(("true", "1", "yes", "on"), 1.0) | dict.fromkeys(("false", "0", "no", "off"), 0.0)
_USUAL = RerankConfig()
VARIABLES: dict[str, tuple[float, int | None]] = SETTINGS["variables"]
"""The value of each variable by default, and the least number it may be; None where it is a flag."""


def resolve(config: SearchConfig, environ: Mapping[str, str]) -> SearchConfig:
    """The configuration as the environment asks for it; ConfigError names every variable of another kind."""
    problems, values = [], {}
    for name, (default, least) in VARIABLES.items():
        text = environ.get(name, "").strip().lower()
        if least is None:
            values[name], rule = FLAGS.get(text, default), "true or false"
            wrong = bool(text) and text not in FLAGS
        else:
            wrong = bool(text) and not (text.isascii() and text.isdigit() and int(text) >= least)
            values[name] = float(text) if text and not wrong else default
            rule = f"a whole number of at least {least}"
        if wrong:
            problems.append(f"{name} is {quote(text)}; it must be {rule}")
    if problems:
        raise ConfigError("; ".join(problems))
    fuses, bm25, fuzzy, reranks, top, p95_ms, ttl_ms, size = values.values()
    provider = environ.get("CROSS_ENCODER_PROVIDER", "").strip().lower() or _USUAL.provider
    rerank = RerankConfig(provider, p95_ms, ttl_ms, int(size))
    config = replace(config, rewrite=config.rewrite and bool(fuzzy), rerank=rerank)
    if not bm25:  # FTS5 stands in; what starts from BM25's list starts from FTS5's
        left = {name: settings for name, settings in config.retrievers.items() if name != "bm25"}
        for name, settings in left.items():
            left[name] = replace(settings, after=tuple("fts" if it == "bm25" else it for it in settings.after))
        config = replace(config.with_substitutes({"bm25": "fts"}), retrievers=left)
    if not fuses:
        config = config.with_strategy(parse_strategy("vector"))
    return replace(config, finish=(Rerank(int(top), penalty="length"), *config.finish)) if reranks else config


PROFILES = DOCUMENTED, JS, SHIPPED, NEWEST = generations("spec_kit", vars(words) | globals())
