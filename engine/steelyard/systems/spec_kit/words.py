"""What system-spec-kit makes of words: BM25 terms, FTS5 expressions, enhanced queries, and what a query is for.

The document asks for 44 stop words, more than 15 suffix rules, and ``user_authentication_flow`` as
``[user, authent, flow]``. Neither generation of the code does that (systems differ in how they treat underscores
and suffixes), so each has a tokenizer of its own here. The document puts enhancement into hybrid search; the
JavaScript code has it in a module that nothing calls, and the TypeScript code dropped it.

Sources: seeds/spec-kit.txt, BM25 index features and intent classification; the code of 8f561032 (TypeScript) and
04a827ec (JavaScript), whose words stand in `words.json` beside those of the document's table of intents.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import Stemmer

from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry
from steelyard.memory.query import Intent

WORDS: dict[str, Any] = STRICT_JSON.decode(resources.files(__package__).joinpath("words.json").read_text("utf-8"))


def table(name: str) -> dict[str, tuple[str, ...]]:
    """The lists of a table of `words.json` by name."""
    return {key: tuple(words) for key, words in WORDS[name].items()}


# Terms

STOP_WORDS_SHIPPED = tuple(WORDS["stop_words_typescript"])
"""The 48 words that the TypeScript code drops."""
STOP_WORDS = frozenset(STOP_WORDS_SHIPPED[:44])
"""The document counts 44 words and names none. These are the shipped ones without the last four: then, than,
too, very.
"""
STOP_WORDS_JS = frozenset(WORDS["stop_words_javascript"])
"""The 38 words that the JavaScript code drops."""
_WORDS = re.compile(r"[^\W_]{2,}")
_NOT_SHIPPED = re.compile(r"[^a-z0-9\s_-]")
_NOT_JS = re.compile(r"[^a-z0-9_\s]")
_SHIPPED_SUFFIXES = (("ing", 5), ("tion", 6), ("ed", 4), ("ly", 4), ("es", 4), ("s", 3))
"""Suffix, and the length a word has to exceed; only the first that fits is cut."""
_JS_SUFFIXES = (
    ("ing", ""), ("ed", ""), ("ies", "i"), ("es", ""), ("s", ""), ("ment", ""), ("ness", ""), ("able", ""),
    ("ible", ""),
    ("tion", "t"), ("sion", "s"), ("ally", ""), ("ful", ""), ("less", ""), ("ive", ""), ("ize", ""), ("ise", ""),
)  # fmt: skip
"""Suffix and what takes its place; all are tried, one after another."""
_porter = Stemmer.Stemmer("porter", 0)
INDEXED = ("title", "text", "tags", "uri")
"""The fields that `indexed_text` reads."""


def indexed_text(entry: Entry) -> str:
    """What the BM25 index reads of an entry: title, content, trigger phrases as JSON, and the path."""
    phrases = json.dumps(list(entry.tags), ensure_ascii=False, separators=(",", ":"))
    return f"{entry.title} {entry.text} {phrases} {entry.uri}"


def tokens_documented(text: str) -> list[str]:
    """The document's terms: letters and digits of any script, lower-cased, without stop words.

    They are stemmed as Porter does (1980), like the document's example. Underscores and hyphens separate words.

    >>> tokens_documented("the user_authentication_flow")
    ['user', 'authent', 'flow']
    """
    return list(_porter.stemWords([word for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS]))


def tokens_shipped(text: str) -> list[str]:
    """The TypeScript terms: hyphens and underscores stay inside words, accented letters split them."""
    words = _NOT_SHIPPED.sub(" ", text.lower()).split()
    return [stem_shipped(word) for word in words if len(word) >= 2 and word not in STOP_WORDS_SHIPPED]


def stem_shipped(word: str) -> str:
    """The TypeScript stem: the first suffix that fits is cut, the others stay."""
    word = word.lower()
    fits = (word[: -len(end)] for end, least in _SHIPPED_SUFFIXES if len(word) > least and word.endswith(end))
    return next(fits, word)


def tokens_js(text: str) -> list[str]:
    """The JavaScript terms: underscores stay inside words, hyphens separate them."""
    words = _NOT_JS.sub(" ", text.lower()).split()
    return [stem_js(word) for word in words if len(word) >= 2 and word not in STOP_WORDS_JS]


def stem_js(word: str) -> str:
    """The JavaScript stem: 17 suffixes are cut in turn from words of four or more characters."""
    left = word
    for end, instead in _JS_SUFFIXES if len(word) >= 4 else ():
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


def every_word_js(text: str) -> str:
    """Every piece of the query: the JavaScript code leaves FTS5's own AND between them.

    It doubles quotes and writes none around a piece; ours quotes each, so that no text is read as syntax.
    """
    plain = _SIGNS_JS.sub(" ", _OPERATORS.sub(" ", text))
    return " ".join('"' + piece.replace('"', '""') + '"' for piece in plain.split())


# Enhancement: acronyms spelled out, misspelled acronyms recognised, frequent typos mended

ACRONYMS = table("acronyms")
"""The 55 acronyms and what each stands for."""
TYPOS = {wrong: right for right, every in table("misspelled").items() for wrong in every}
"""The 35 typos and their corrections."""
_NO_ACRONYMS = frozenset(WORDS["stop_words_of_acronyms"])
"""The 82 words that are not misspelled acronyms."""
_BLANKS = re.compile(r"(?:[^\S\x1c-\x1f\x85]|\ufeff)+")
"""White space as JavaScript has it."""
MAX_EDITS = 2
MIN_TERM = 3
"""Characters of the shortest word that is looked up; two-letter acronyms are never expanded, as in the code."""
LONG_TERM = 4
"""Characters from which a word is compared with the words an acronym stands for."""
_SPELLED = tuple(
    (word, name)
    for name, texts in ACRONYMS.items()
    for word in " ".join(texts).lower().split()
    if len(word) >= LONG_TERM
)
"""Every longer word that an acronym stands for, and the acronym, in the order of the table."""


@lru_cache(1024)
def enhanced(query: str) -> str:
    """The query with its typos mended and its acronyms spelled out: what the document matches keywords by.

    Recordings ask for the same queries again, so the last ones are kept.
    """
    return expand(correct(query))


def expand(query: str) -> str:
    """The query, followed by what its acronyms stand for and by the acronyms that its words point to.

    >>> expand("tf-idf weights")
    'tf-idf weights Term Frequency Inverse Document Frequency tfidf'
    """
    found: dict[str, None] = {}
    for term in _BLANKS.split(query):
        if len(term) >= MIN_TERM:
            texts = ACRONYMS.get(term.upper()) or (*acronyms_like(term), *_pointed_to(term.lower()))
            found |= dict.fromkeys(texts)
    return " ".join((query, *found))


def correct(query: str) -> str:
    """The query with every known typo mended, and one blank wherever there is white space."""
    return " ".join(TYPOS.get(word.lower(), word) for word in _BLANKS.split(query))


def acronyms_like(term: str) -> list[str]:
    """What every acronym one edit (Levenshtein) away from the term stands for, in the order of the table.

    Acronyms of up to four characters have to be as long as the term.

    >>> acronyms_like("BM26")
    ['Best Matching 25', 'Okapi BM25', 'keyword search']
    """
    from rapidfuzz.distance import Levenshtein  # here and below: every command would wait for it

    found: list[str] = []
    upper = term.upper()
    for name, texts in ACRONYMS.items() if term.lower() not in _NO_ACRONYMS else ():
        near = abs(len(upper) - len(name)) <= (len(name) > 4)
        if near and Levenshtein.distance(upper, name, score_cutoff=1) <= 1:
            found += texts
    return found


def _pointed_to(term: str) -> list[str]:
    """The acronyms of which a longer word is at most `MAX_EDITS` away from the term, in the order of the table."""
    if len(term) < LONG_TERM:
        return []
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    spelled = [word for word, _ in _SPELLED]
    edits = cdist([term], spelled, scorer=Levenshtein.distance, score_cutoff=MAX_EDITS)[0]
    return list(dict.fromkeys(_SPELLED[i][1] for i in (edits <= MAX_EDITS).nonzero()[0]))


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


@lru_cache(QUERY_CACHE_SIZE)
def intent_shipped(query: str) -> Intent:
    """The TypeScript classifier: 0.6 of the share of keywords and 0.4 of the share of patterns found.

    One pattern that speaks against understanding leaves 0.3 of its score.
    """
    text, scores = query.lower().strip(), dict.fromkeys(FLAT, 0.0)
    if not text:
        return Intent(FALLBACK, 0.0, scores)
    for name, patterns in _PATTERNS.items():
        count = sum(word in text for word in FLAT[name])
        share = (0.3 if count == 1 else count) / len(FLAT[name])
        scores[name] = 0.6 * share + 0.4 * _matching(patterns, text) / len(patterns)
    if _matching(WORDS["patterns_against_understand"], text):
        scores[FALLBACK] *= 0.3
    return Intent(_best(scores, 0.08), min(1.0, max(scores.values())), scores)


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
