"""What a query is for: seven intents, by keywords and patterns.

The document counts keywords: 2 for a primary and 1 for a secondary one, and wants 3.0. Its code never did; the
TypeScript code takes shares of flat keyword lists and of patterns, the JavaScript code has five intents with
primary and secondary keywords at 1 and 0.5. The document names no list, so its classifier counts the words of
both programs and of its own table. Every classifier returns a score for each of its intents. Sources:
seeds/spec-kit.txt, intent classification; the code of 8f561032 and 04a827ec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from steelyard.systems.spec_kit.tables import (
    AGAINST_UNDERSTAND,
    FLAT,
    PATTERNS,
    PATTERNS_JS,
    PRIMARY,
    SECONDARY,
    table,
)

FALLBACK = "understand"
"""The intent of a query that no other one claims with enough confidence."""


@dataclass(frozen=True)
class Intent:
    """What a query is for, how sure the classifier is (0..1), and the score of every intent it considered."""

    name: str
    confidence: float
    scores: Mapping[str, float]


_PAGE = table("keywords_of_the_page")
"""The words of the document's table of intents, and of their names, that neither program counts; all secondary.

What it calls retrieval and lookup, the TypeScript code's patterns spell out: find, show, get. `feature` is here
because the document's example takes it for a word of add_feature; `reason` is one of the JavaScript code, for an
intent that it lacks.
"""
_FORMS = table("forms_of_keywords")
"""The forms of a keyword that no ending makes of it."""
_ENDINGS = {"e": "(?:e|es|ed|ing)", "y": "(?:y|ies|ied|ying)"}


def _whole(keyword: str) -> re.Pattern[str]:
    """A keyword as whole words, in any regular ending: ``crash`` is in "crashes", ``fix`` not in "prefix"."""
    forms = (
        re.escape(word[:-1]) + _ENDINGS.get(word[-1], f"{word[-1]}(?:{word[-1]}?(?:ed|ing)|e?s)?")
        for word in _FORMS.get(keyword, (keyword,))
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)")


def _keywords(name: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The primary keywords, the secondary ones and the patterns of an intent for the document's classifier.

    The JavaScript code says which keyword is primary; one that only the TypeScript code has is. Where the two
    disagree on whose a keyword is, the code with seven intents decides.
    """
    others = {*FLAT["find_decision"], "reason"} if name == FALLBACK else set()
    second = dict.fromkeys((*SECONDARY.get(name, ()), *_PAGE[name]))
    first = dict.fromkeys((*PRIMARY.get(name, ()), *FLAT[name]))
    patterns = dict.fromkeys((*PATTERNS_JS.get(name, ()), *PATTERNS[name]))
    return (
        tuple(_whole(word) for word in first if word not in second and word not in others),
        tuple(_whole(word) for word in second if word not in others),
        tuple(re.compile(rf"\b(?:{text})") for text in patterns),
    )


@cache
def _documented() -> dict[str, tuple[tuple[re.Pattern[str], ...], ...]]:
    """By intent, the default last: among equals another one goes before it."""
    return {name: _keywords(name) for name in sorted(FLAT, key=FALLBACK.__eq__)}


INTENTS, INTENTS_JS = tuple(FLAT), tuple(PRIMARY)
"""The seven intents of the document and the TypeScript code, the five of the JavaScript code."""
THRESHOLD = 3.0
THRESHOLD_SHIPPED = 0.08
THRESHOLD_JS = 0.25
ASKED = 1024
"""Queries that are kept with their intent: a search asks for its confidence, too, and recordings ask again."""


@lru_cache(ASKED)
def classify(query: str) -> Intent:
    """The document's classifier: 2 for each primary keyword, 1 for each secondary one, at least 3.0 to be sure.

    Keywords are whole words, in any regular ending. A pattern of either program that fits counts as the secondary
    keyword of a query that has none of its intent, for the document speaks of keyword patterns and counts none in
    its example. Among equals another intent goes before the default. The confidence is score / (score + 1), a
    monotone map of ours, for the document's 0.85 cannot be computed from its own numbers.

    >>> classify("fix login crash after update").scores["fix_bug"]
    5.0
    >>> classify("why did we choose NATS").name, classify("a prefix of the key").scores["fix_bug"]
    ('find_decision', 0.0)
    """
    text = query.lower()
    scores = {}
    for name, (primary, secondary, patterns) in _documented().items():
        asked = any(pattern.search(text) for pattern in patterns)
        scores[name] = 2.0 * _matching(primary, text) + max(_matching(secondary, text), asked)
    name = _best(scores, THRESHOLD)
    return Intent(name, scores[name] / (scores[name] + 1.0), scores)


@lru_cache(ASKED)
def classify_shipped(query: str) -> Intent:
    """The TypeScript classifier: 0.6 of the share of keywords and 0.4 of the share of patterns found.

    >>> classify_shipped("add user registration feature").confidence
    0.18
    """
    text = query.lower().strip()
    scores = dict.fromkeys(FLAT, 0.0)
    if not text:
        return Intent(FALLBACK, 0.0, scores)
    for name, flat in FLAT.items():
        count = _found(flat, text)
        share = (0.3 if count == 1 else count) / len(flat)
        patterns = PATTERNS[name]
        scores[name] = 0.6 * share + 0.4 * _matching(_compiled(patterns), text) / len(patterns)
    if _matching(_compiled(AGAINST_UNDERSTAND), text):
        scores[FALLBACK] *= 0.3
    name = _best(scores, THRESHOLD_SHIPPED)
    return Intent(name, min(1.0, max(scores.values())), scores)


@lru_cache(ASKED)
def classify_js(query: str) -> Intent:
    """The JavaScript classifier: five intents, primary keywords 1 and secondary ones 0.5, patterns 0.4 each."""
    text = query.lower().strip()
    if not text:
        return Intent(FALLBACK, 0.0, {})
    scores = dict.fromkeys(PRIMARY, 0.0)
    for name, primary in PRIMARY.items():
        secondary = SECONDARY[name]
        most = len(primary) + 0.5 * len(secondary)
        share = min(1.0, (_found(primary, text) + 0.5 * _found(secondary, text)) / max(3.0, 0.3 * most))
        scores[name] = 0.6 * share + 0.4 * min(1.0, 0.4 * _matching(_compiled(PATTERNS_JS[name]), text))
    name = _best(scores, THRESHOLD_JS)
    return Intent(name, max(scores.values()), scores)


def intent(query: str) -> str:
    """The name of the intent by the document's classifier."""
    return classify(query).name


def intent_shipped(query: str) -> str:
    """The name of the intent by the TypeScript classifier."""
    return classify_shipped(query).name


def intent_js(query: str) -> str:
    """The name of the intent by the JavaScript classifier."""
    return classify_js(query).name


def _found(keywords: tuple[str, ...], text: str) -> int:
    return sum(word in text for word in keywords)


def _matching(patterns: Iterable[re.Pattern[str]], text: str) -> int:
    return sum(pattern.search(text) is not None for pattern in patterns)


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Made when a query first asks, because compiling so many takes as long as importing numpy."""
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


def _best(scores: Mapping[str, float], least: float) -> str:
    """The intent with the highest score, the first among equals; the fallback below `least`."""
    name = max(scores, key=lambda intent: scores[intent])
    return name if scores[name] >= least else FALLBACK
