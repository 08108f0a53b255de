"""What system-spec-kit makes of words: BM25 terms, FTS5 expressions, and enhanced queries.

The document asks for 44 stop words, more than 15 suffix rules, and ``user_authentication_flow`` as
``[user, authent, flow]``. Neither generation of the code does that (systems differ in how they treat underscores
and suffixes), so each has a tokenizer of its own here. The document puts enhancement into hybrid search; the
JavaScript code has it in a module that nothing calls, and the TypeScript code dropped it.

Sources: seeds/spec-kit.txt, BM25 index features; the code of 8f561032 (TypeScript) and 04a827ec (JavaScript),
whose words stand in `words.json` beside those of the document's table of intents.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import Stemmer

from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry

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
    stems: list[str] = _porter.stemWords([word for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS])
    return stems


def tokens_shipped(text: str) -> list[str]:
    """The TypeScript terms: hyphens and underscores stay inside words, accented letters split them.

    >>> tokens_shipped("the user_authentication_flow of a café")
    ['user_authentication_flow', 'caf']
    """
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


def words_of(text: str) -> list[str]:
    """The quoted pieces of a query, without FTS5's operators and signs. Source: the TypeScript code."""
    return [f'"{piece}"' for piece in _DELETED.sub("", _OPERATORS.sub("", text)).replace(":", " ").split()]


def any_word(text: str) -> str:
    """Any piece of the query, joined by OR; empty when nothing is left.

    >>> any_word("auth: (token*)")
    '"auth" OR "token"'
    """
    return " OR ".join(words_of(text))


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


@lru_cache(1024)
def enhanced(query: str) -> str:
    """The query with its typos mended and its acronyms spelled out: what the document matches keywords by.

    Recordings ask for the same queries again, so the last ones are kept.

    >>> enhanced("tf-idf serach").split()[:2]
    ['tf-idf', 'search']
    """
    return expand(correct(query))


def expand(query: str) -> str:
    """The query, followed by what its acronyms stand for and by the acronyms that its words point to.

    >>> expand("tf-idf weights")
    'tf-idf weights Term Frequency Inverse Document Frequency tfidf'
    """
    return " ".join((query, *dict.fromkeys(text for term in _BLANKS.split(query) for text in _expansions(term))))


def correct(query: str) -> str:
    """The query with every known typo mended, and one blank wherever there is white space."""
    return " ".join(TYPOS.get(word.lower(), word) for word in _BLANKS.split(query))


def _expansions(term: str) -> tuple[str, ...]:
    if len(term) < MIN_TERM:
        return ()
    return ACRONYMS.get(term.upper()) or (*acronyms_like(term), *_pointed_to(term.lower()))


def acronyms_like(term: str) -> list[str]:
    """What every acronym one edit (Levenshtein) away from the term stands for, in the order of the table.

    Acronyms of up to four characters have to be as long as the term.

    >>> acronyms_like("BM26")
    ['Best Matching 25', 'Okapi BM25', 'keyword search']
    """
    if term.lower() in _NO_ACRONYMS:
        return []
    return [text for name, texts in ACRONYMS.items() if _is_near(term.upper(), name) for text in texts]


def _is_near(term: str, acronym: str) -> bool:
    from rapidfuzz.distance import Levenshtein  # here and below: every command would wait for it

    room = 0 if len(acronym) <= 4 else 1
    return abs(len(term) - len(acronym)) <= room and Levenshtein.distance(term, acronym, score_cutoff=1) <= 1


def _pointed_to(term: str) -> list[str]:
    """The acronyms of which a longer word is at most `MAX_EDITS` away from the term, in the order of the table."""
    if len(term) < LONG_TERM:
        return []
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    words, names = _spelled()
    edits = cdist([term], words, scorer=Levenshtein.distance, score_cutoff=MAX_EDITS)[0]
    return list(dict.fromkeys(names[i] for i in (edits <= MAX_EDITS).nonzero()[0]))


@cache
def _spelled() -> tuple[list[str], list[str]]:
    """Every longer word that an acronym stands for, and the acronym of each."""
    pairs = [(word, name) for name, texts in ACRONYMS.items() for word in " ".join(texts).lower().split()]
    long = [(word, name) for word, name in pairs if len(word) >= LONG_TERM]
    return [word for word, _ in long], [name for _, name in long]
