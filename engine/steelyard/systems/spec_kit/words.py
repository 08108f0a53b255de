"""What system-spec-kit makes of words: BM25 terms, FTS5 expressions, and what a query is for.

The document asks for 44 stop words, more than 15 suffix rules, and ``user_authentication_flow`` as
``[user, authent, flow]``. Neither generation of the code does that (systems differ in how they treat underscores
and suffixes), so each has a tokenizer of its own here.

Sources: seeds/spec-kit.txt, BM25 index features and intent classification; the code of 8f561032 (TypeScript) and
04a827ec (JavaScript), whose words stand in `words.json` beside those of the document's table of intents.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from typing import Any

import numpy as np
import Stemmer

from steelyard.base.arrays import Floats
from steelyard.base.files import data
from steelyard.memory.entry import Entry
from steelyard.memory.query import Intent

Tables = Mapping[str, Mapping[str, Sequence[str]]]
"""Of each intent the keywords, the patterns, and the patterns that speak against it."""


WORDS: dict[str, Any] = data(__package__, "words.json")


def table(name: str) -> dict[str, tuple[str, ...]]:
    """The lists of a table of `words.json` by name."""
    return {key: tuple(words) for key, words in WORDS[name].items()}


# Terms

STOP_WORDS_SHIPPED = frozenset(WORDS["stop_words_typescript"])
"""The 48 words that the TypeScript code drops."""
STOP_WORDS = frozenset(WORDS["stop_words_typescript"][:44])
"""The document counts 44 words and names none. These are the shipped ones without the last four: then, than,
too, very.
"""
STOP_WORDS_JS = frozenset(WORDS["stop_words_javascript"])
"""The 38 words that the JavaScript code drops."""
_WORDS = re.compile(r"[^\W_]{2,}")
_NOT_SHIPPED = re.compile(r"[^a-z0-9\s_-]")
_NOT_JS = re.compile(r"[^a-z0-9_\s]")
PORTER = Stemmer.Stemmer("porter", 0)
INDEXED = ("title", "text", "tags", "uri")
"""The fields that `indexed_text` reads."""


def indexed_text(entry: Entry) -> str:
    """What the BM25 index reads of an entry: title, content, trigger phrases as JSON, and the path."""
    phrases = json.dumps(list(entry.tags), ensure_ascii=False, separators=(",", ":"))
    return f"{entry.title} {entry.text} {phrases} {entry.uri}"


def indexed_text_newest(entry: Entry) -> str:
    """The same of the newest program, which reads trigger phrases as words."""
    parts = (entry.title, entry.text, " ".join(entry.tags), entry.uri)
    return " ".join(filter(None, map(str.strip, parts)))


def tokens_documented(text: str) -> list[str]:
    """The document's terms: letters and digits of any script, lower-cased, without stop words.

    They are stemmed as Porter does (1980), like the document's example. Underscores and hyphens separate words.

    >>> tokens_documented("the user_authentication_flow")
    ['user', 'authent', 'flow']
    """
    return list(PORTER.stemWords([word for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS]))


def tokens_shipped(text: str) -> list[str]:
    """The TypeScript terms: hyphens and underscores stay inside words, accented letters split them."""
    return [stem_shipped(word) for word in _words(text) if len(word) >= 2 and word not in STOP_WORDS_SHIPPED]


def _words(text: str) -> list[str]:
    return _NOT_SHIPPED.sub(" ", text.lower()).split()


def stem_shipped(word: str) -> str:
    """The TypeScript stem: the first suffix in the table that a longer word than its number has is cut."""
    word = word.lower()
    suffixes = WORDS["suffixes_typescript"]
    return next((word[: -len(end)] for end, least in suffixes if len(word) > least and word.endswith(end)), word)


def tokens_newest(text: str) -> list[str]:
    """The newest program's terms (82504c17): the TypeScript ones, of which a doubled consonant loses one.

    >>> tokens_newest("the stopped ferry_desk calls")
    ['stop', 'ferry_desk', 'cal']
    """
    return [_stem_newest(word) for word in _words(text) if len(word) >= 2 and word not in STOP_WORDS_SHIPPED]


@lru_cache(200_000)  # it takes longer than all else that is done to a word
def _stem_newest(word: str) -> str:
    stem = stem_shipped(word)
    return re.sub(r"(?<=.)([^aeiou])\1$", r"\1", stem) if stem != word else word


def tokens_js(text: str) -> list[str]:
    """The JavaScript terms: underscores stay inside words, hyphens separate them."""
    words = _NOT_JS.sub(" ", text.lower()).split()
    return [stem_js(word) for word in words if len(word) >= 2 and word not in STOP_WORDS_JS]


@lru_cache(200_000)
def stem_js(word: str) -> str:
    """The JavaScript stem: 17 suffixes are cut in turn from words of four or more characters."""
    left = word
    for end, instead in WORDS["suffixes_javascript"] if len(word) >= 4 else ():
        if left.endswith(end):
            left = left[: -len(end)] + instead
    return left if len(left) >= 2 else word


# Expressions of FTS5

_OPERATORS = re.compile(r"\b(AND|OR|NOT|NEAR)\b", re.IGNORECASE)
_DELETED = re.compile(r'[*^(){}\[\]"]')
_SIGNS_JS = re.compile(r"[*^(){}\[\]:+-]")


def any_word(text: str) -> str:
    """Any quoted piece of the query, without FTS5's operators and signs (TypeScript code); empty without any."""
    pieces = _DELETED.sub("", _OPERATORS.sub("", text)).replace(":", " ").split()
    return " OR ".join(f'"{piece}"' for piece in pieces)


def any_word_newest(text: str) -> str:
    """Any word of the query, or all of them together (the newest program); hyphens and underscores stay inside."""
    words = _words(_DELETED.sub("", re.sub(r"/\d+", " ", _OPERATORS.sub("", text))))
    return " OR ".join(f'"{word}"' for word in (*words, *([" ".join(words)] if len(words) > 1 else ())))


def every_word_js(text: str) -> str:
    """Every piece of the query: the JavaScript code leaves FTS5's own AND between them.

    It doubles quotes and writes none around a piece; ours quotes each, so that no text is read as syntax.
    """
    plain = _SIGNS_JS.sub(" ", _OPERATORS.sub(" ", text))
    return " ".join('"' + piece.replace('"', '""') + '"' for piece in plain.split())


# Intents: what a query is for, by keywords and patterns
#
# The document counts keywords: 2 for a primary and 1 for a secondary one, and wants 3.0. Its code never did; the
# TypeScript code takes shares of flat keyword lists and of patterns, the JavaScript code has five intents with
# primary and secondary keywords at 1 and 0.5. The document names no list, so its classifier counts the words of
# both programs and of its own table.

FLAT = table("keywords_typescript")
"""The TypeScript code's keywords of each intent."""
PRIMARY, SECONDARY = table("keywords_javascript_primary"), table("keywords_javascript_secondary")
"""Primary and secondary keywords of the JavaScript code."""
_PATTERNS, _PATTERNS_JS = table("patterns_typescript"), table("patterns_javascript")
"""The patterns of both codes, in lower case; compiled from the first query on, which takes as long as importing
numpy."""
NEWEST: dict[str, Any] = data(__package__, "newest.json")
"""What the newest program does otherwise (82504c17): keywords, patterns, phrases as sets of words, strategies."""
_SHIPPED: Tables = {"keywords": FLAT, "patterns": _PATTERNS, "against": WORDS["patterns_against"]}
INTENTS, INTENTS_JS = tuple(FLAT), tuple(PRIMARY)
"""The seven intents of the document and the TypeScript code, the five of the JavaScript code."""
FALLBACK = "understand"
"""The intent of a query that no other one claims with enough confidence."""
QUERY_CACHE_SIZE = 1024
"""Queries that are kept with their intent: recordings ask again."""
_PAGE = table("keywords_of_the_page")
"""The words of the document's table of intents, and of their names, that neither program counts; all secondary.

What it calls retrieval and lookup, the TypeScript code's patterns spell out: find, show, get. `feature` is here
because the document's example takes it for a word of add_feature; `reason` is one of the JavaScript code, for an
intent that it lacks.
"""
_FORMS = table("forms_of_keywords")
"""The forms of a keyword that no ending makes of it."""
_ENDINGS = {"e": "(?:e|es|ed|ing)", "y": "(?:y|ies|ied|ying)"}


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
        first = (word for word in (*PRIMARY.get(name, ()), *FLAT[name]) if word not in second)
        keywords = (dict.fromkeys(word for word in words if word not in others) for words in (first, second))
        patterns = {*_PATTERNS_JS.get(name, ()), *_PATTERNS[name]}
        made[name] = (
            *(tuple(map(_whole, words)) for words in keywords),
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


@lru_cache(QUERY_CACHE_SIZE)
def intent(query: str) -> Intent:
    """The document's classifier: 2 for each primary keyword, 1 for each secondary one, at least 3.0 to be sure.

    Keywords are whole words, in any regular ending. A pattern of either program that fits counts as the secondary
    keyword of a query that has none of its intent, for the document speaks of keyword patterns and counts none in
    its example. Among equals another intent goes before the default. The confidence is score / (score + 1), a
    monotone map of ours, for the document's 0.85 cannot be computed from its own numbers.

    >>> intent("fix login crash after update").scores["fix_bug"]
    5.0
    """
    text, scores = query.lower(), {}
    for name, groups in _documented().items():
        primary, secondary, asked = (sum(p.search(text) is not None for p in patterns) for patterns in groups)
        scores[name] = 2.0 * primary + max(secondary, asked > 0)
    name = _best(scores, 3.0)
    return Intent(name, scores[name] / (scores[name] + 1.0), scores)


def _scored(
    text: str, tables: Tables, shares: tuple[float, float], own: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, int]]:
    """The score of each intent, and how many of its keywords and patterns a text has.

    Their shares, each times its number, are added to its own score. A single keyword counts 0.3, and one pattern
    that speaks against the intent leaves 0.3 of its score.
    """
    scores, found = {}, {}
    for name, keywords in tables["keywords"].items():
        count, fit = sum(word in text for word in keywords), _matching(patterns := tables["patterns"][name], text)
        words = shares[0] * ((0.3 if count == 1 else count) / len(keywords))
        score = own.get(name, 0.0) + words + shares[1] * fit / len(patterns)
        scores[name] = score * 0.3 if _matching(tables["against"].get(name, ()), text) else score
        found[name] = count + fit
    return scores, found


@lru_cache(QUERY_CACHE_SIZE)
def intent_shipped(query: str) -> Intent:
    """The TypeScript classifier: 0.6 of the share of keywords and 0.4 of the share of patterns found."""
    scores, _ = _scored(query.lower().strip(), _SHIPPED, (0.6, 0.4), {})
    return Intent(_best(scores, 0.08), min(1.0, max(scores.values())), scores)


@lru_cache(QUERY_CACHE_SIZE)
def intent_newest(query: str) -> Intent:
    """The newest classifier: 0.35 of the share of keywords, 0.15 of that of patterns, 0.5 of a cosine of words.

    The cosine is that of the query's words and of the keywords and phrases of the intent, hashed into 128 places.
    Below a confidence of 0.25, and below 0.3 without a keyword or a pattern, the query is to understand.
    """
    text = query.lower()
    own = {name: 0.5 * max(0.0, float(_hashed(text) @ middle)) for name, middle in _middles().items()}
    scores, found = _scored(text, NEWEST, (0.35, 0.15), own)
    if _matching(NEWEST["asks_for_a_spec"], text):
        scores["find_spec"] += 0.25
        scores["security_audit"] *= 0.6
    name, sure = _best(scores, 0.25), max(scores.values())
    return Intent(name if found[name] or sure >= 0.3 else FALLBACK, min(1.0, sure), scores)


@cache
def _middles() -> dict[str, Floats]:
    """The direction of the keywords and phrases of each intent, float64[128]."""
    every = {name: (*NEWEST["word_sets"][name], *keywords) for name, keywords in NEWEST["keywords"].items()}
    return {name: _unit(np.sum([*map(_hashed, texts)], axis=0)) for name, texts in every.items()}


def _hashed(text: str) -> Floats:
    """The words of a text in 128 places by their FNV-1a hash, float64[128] of length 1, or 0 without words."""
    places = np.zeros(128)
    for word in re.findall("[a-z0-9_]+", text):
        places[reduce(lambda code, byte: (code ^ byte) * 0x01000193 % 2**32, word.encode(), 0x811C9DC5) % 128] += 1
    return _unit(places)


def _unit(places: Floats) -> Floats:
    return places / max(float(np.linalg.norm(places)), 1e-9)


@lru_cache(QUERY_CACHE_SIZE)
def intent_js(query: str) -> Intent:
    """The JavaScript classifier: five intents, primary keywords 1 and secondary ones 0.5, patterns 0.4 each."""
    text, scores = query.lower().strip(), {}
    if not text:
        return Intent(FALLBACK, 0.0)
    for name, primary in PRIMARY.items():
        secondary = SECONDARY[name]
        found = sum(word in text for word in primary) + 0.5 * sum(word in text for word in secondary)
        share = min(1.0, found / max(3.0, 0.3 * (len(primary) + 0.5 * len(secondary))))
        scores[name] = 0.6 * share + 0.4 * min(1.0, 0.4 * _matching(_PATTERNS_JS[name], text))
    return Intent(_best(scores, 0.25), max(scores.values()), scores)


def _matching(patterns: Iterable[str], text: str) -> int:
    return sum(re.search(pattern, text) is not None for pattern in patterns)


def _best(scores: Mapping[str, float], least: float) -> str:
    """The intent with the highest score, the first among equals; the fallback below `least`."""
    name = max(scores, key=lambda intent: scores[intent])
    return name if scores[name] >= least else FALLBACK
