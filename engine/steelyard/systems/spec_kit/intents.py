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

from steelyard.systems.spec_kit.words import WORDS, table

FLAT = table("keywords_typescript")
"""The TypeScript code's keywords of each intent."""
PRIMARY, SECONDARY = table("keywords_javascript_primary"), table("keywords_javascript_secondary")
"""Primary and secondary keywords of the JavaScript code."""
PATTERNS, PATTERNS_JS = table("patterns_typescript"), table("patterns_javascript")
"""The patterns of both codes, whatever the case."""
AGAINST_UNDERSTAND = tuple(WORDS["patterns_against_understand"])
"""Patterns of the TypeScript code: one that speaks against understanding leaves 0.3 of its score."""
INTENTS, INTENTS_JS = tuple(FLAT), tuple(PRIMARY)
"""The seven intents of the document and the TypeScript code, the five of the JavaScript code."""
FALLBACK = "understand"
"""The intent of a query that no other one claims with enough confidence."""
THRESHOLD, THRESHOLD_SHIPPED, THRESHOLD_JS = 3.0, 0.08, 0.25
"""The least score of a query that is not the fallback's."""
ASKED = 1024
"""Queries that are kept with their intent: a search asks for its confidence, too, and recordings ask again."""
_PAGE = table("keywords_of_the_page")
"""The words of the document's table of intents, and of their names, that neither program counts; all secondary.

What it calls retrieval and lookup, the TypeScript code's patterns spell out: find, show, get. `feature` is here
because the document's example takes it for a word of add_feature; `reason` is one of the JavaScript code, for an
intent that it lacks.
"""
_FORMS = table("forms_of_keywords")
"""The forms of a keyword that no ending makes of it."""
_ENDINGS = {"e": "(?:e|es|ed|ing)", "y": "(?:y|ies|ied|ying)"}


@dataclass(frozen=True)
class Intent:
    """What a query is for, how sure the classifier is (0..1), and the score of every intent it considered."""

    name: str
    confidence: float
    scores: Mapping[str, float]


@cache
def _documented() -> dict[str, tuple[tuple[re.Pattern[str], ...], ...]]:
    """The primary keywords, the secondary ones and the patterns of the document's classifier by intent.

    The default intent is the last. The JavaScript code says which keyword is primary; one that only the TypeScript
    code has is. Where the two disagree on whose a keyword is, the code with seven intents decides.
    """
    made: dict[str, tuple[tuple[re.Pattern[str], ...], ...]] = {}
    for name in sorted(FLAT, key=FALLBACK.__eq__):
        others = {*FLAT["find_decision"], "reason"} if name == FALLBACK else set()
        second = dict.fromkeys((*SECONDARY.get(name, ()), *_PAGE[name]))
        first = dict.fromkeys((*PRIMARY.get(name, ()), *FLAT[name]))
        patterns = dict.fromkeys((*PATTERNS_JS.get(name, ()), *PATTERNS[name]))
        made[name] = (
            tuple(_whole(word) for word in first if word not in second and word not in others),
            tuple(_whole(word) for word in second if word not in others),
            tuple(re.compile(rf"\b(?:{text})") for text in patterns),
        )
    return made


def _whole(keyword: str) -> re.Pattern[str]:
    """A keyword as whole words, in any regular ending: ``crash`` is in "crashes", ``fix`` not in "prefix"."""
    forms = (
        re.escape(word[:-1]) + _ENDINGS.get(word[-1], f"{word[-1]}(?:{word[-1]}?(?:ed|ing)|e?s)?")
        for word in _FORMS.get(keyword, (keyword,))
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)")


@lru_cache(ASKED)
def classify(query: str) -> Intent:
    """The document's classifier: 2 for each primary keyword, 1 for each secondary one, at least 3.0 to be sure.

    Keywords are whole words, in any regular ending. A pattern of either program that fits counts as the secondary
    keyword of a query that has none of its intent, for the document speaks of keyword patterns and counts none in
    its example. Among equals another intent goes before the default. The confidence is score / (score + 1), a
    monotone map of ours, for the document's 0.85 cannot be computed from its own numbers.

    >>> classify("fix login crash after update").scores["fix_bug"]
    5.0
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
    return Intent(_best(scores, THRESHOLD_SHIPPED), min(1.0, max(scores.values())), scores)


@lru_cache(ASKED)
def classify_js(query: str) -> Intent:
    """The JavaScript classifier: five intents, primary keywords 1 and secondary ones 0.5, patterns 0.4 each."""
    text = query.lower().strip()
    if not text:
        return Intent(FALLBACK, 0.0, {})
    scores = {}
    for name, primary in PRIMARY.items():
        secondary = SECONDARY[name]
        most = len(primary) + 0.5 * len(secondary)
        share = min(1.0, (_found(primary, text) + 0.5 * _found(secondary, text)) / max(3.0, 0.3 * most))
        scores[name] = 0.6 * share + 0.4 * min(1.0, 0.4 * _matching(_compiled(PATTERNS_JS[name]), text))
    return Intent(_best(scores, THRESHOLD_JS), max(scores.values()), scores)


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
