"""How system-spec-kit turns text into BM25 terms, and a query into an FTS5 expression.

The document asks for 44 stop words, more than 15 suffix rules, and ``user_authentication_flow`` as
``[user, authent, flow]``. Neither generation of the code does that (systems differ in how they treat underscores
and suffixes), so each has a tokenizer of its own here. Sources: seeds/spec-kit.txt, BM25 index features; the
code of 8f561032 (TypeScript) and 04a827ec (JavaScript).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

import Stemmer

from steelyard.memory.entry import Entry
from steelyard.systems.spec_kit.tables import WORDS

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
_OPERATORS = re.compile(r"\b(AND|OR|NOT|NEAR)\b", re.IGNORECASE)
_DELETED = re.compile(r'[*^(){}\[\]"]')
_SIGNS_JS = re.compile(r"[*^(){}\[\]:+-]")
_SHIPPED_SUFFIXES = (("ing", 5), ("tion", 6), ("ed", 4), ("ly", 4), ("es", 4), ("s", 3))
"""Suffix, and the length a word has to exceed; only the first that fits is cut."""
_JS_SUFFIXES = (
    ("ing", ""), ("ed", ""), ("ies", "i"), ("es", ""), ("s", ""), ("ment", ""), ("ness", ""), ("able", ""),
    ("ible", ""),
    ("tion", "t"), ("sion", "s"), ("ally", ""), ("ful", ""), ("less", ""), ("ive", ""), ("ize", ""), ("ise", ""),
)  # fmt: skip
"""Suffix and what takes its place; all are tried, one after another."""

_porter = Stemmer.Stemmer("porter", 0)


@lru_cache(maxsize=200_000)
def porter_stem(word: str) -> str:
    """Porter's stem (Porter, 1980), as the document's example has it.

    >>> porter_stem("authentication")
    'authent'
    """
    stem: str = _porter.stemWord(word)
    return stem


def stem_shipped(word: str) -> str:
    """The TypeScript stem: the first suffix that fits is cut, the others stay.

    >>> stem_shipped("authentication"), stem_shipped("running"), stem_shipped("this")
    ('authentica', 'runn', 'thi')
    """
    word = word.lower()
    fits = (word[: -len(end)] for end, least in _SHIPPED_SUFFIXES if len(word) > least and word.endswith(end))
    return next(fits, word)


def stem_js(word: str) -> str:
    """The JavaScript stem: 17 suffixes are cut in turn from words of four or more characters."""
    if len(word) < 4:
        return word
    left = word
    for end, instead in _JS_SUFFIXES:
        if left.endswith(end):
            left = left[: -len(end)] + instead
    return left if len(left) >= 2 else word


def tokens_documented(text: str) -> list[str]:
    """The document's terms: letters and digits of any script, lower-cased, stop words dropped, stemmed.

    Underscores and hyphens separate words.

    >>> tokens_documented("the user_authentication_flow")
    ['user', 'authent', 'flow']
    """
    return [porter_stem(word) for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS]


def tokens_shipped(text: str) -> list[str]:
    """The TypeScript terms: hyphens and underscores stay inside words, accented letters split them.

    >>> tokens_shipped("the user_authentication_flow of a café")
    ['user_authentication_flow', 'caf']
    """
    words = _NOT_SHIPPED.sub(" ", text.lower()).split()
    return [stem_shipped(word) for word in words if len(word) >= 2 and word not in STOP_WORDS_SHIPPED]


def tokens_js(text: str) -> list[str]:
    """The JavaScript terms: underscores stay inside words, hyphens separate them."""
    words = _NOT_JS.sub(" ", text.lower()).split()
    return [stem_js(word) for word in words if len(word) >= 2 and word not in STOP_WORDS_JS]


INDEXED = ("title", "text", "tags", "uri")
"""The fields that `indexed_text` reads."""


def indexed_text(entry: Entry) -> str:
    """What the BM25 index reads of an entry: title, content, trigger phrases as JSON, and the path."""
    phrases = json.dumps(list(entry.tags), ensure_ascii=False, separators=(",", ":"))
    return f"{entry.title} {entry.text} {phrases} {entry.uri}"


def words_of(text: str) -> list[str]:
    """The quoted pieces of a query, without FTS5's operators and signs. Source: the TypeScript code.

    >>> words_of("foo AND bar")
    ['"foo"', '"bar"']
    """
    plain = _DELETED.sub("", _OPERATORS.sub("", text)).replace(":", " ")
    return [f'"{piece}"' for piece in plain.split()]


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
