"""Splits texts into words, drops stop words and stems."""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

from steelyard.memory.entry import Entry

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: the content of an entry, without its metadata."""

_WORD = re.compile(r"\w\w+")
_english = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    stem: str = _english.stemWord(word)
    return stem


def terms(text: str) -> list[str]:
    """Split a text into lower-cased words of two or more characters, stemmed (Snowball), without stop words.

    >>> terms("The tokens are rotating, JWT-style")
    ['token', 'rotat', 'jwt', 'style']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def unique_words(text: str) -> list[str]:
    """List the lower-cased words of two or more characters, each once; stop words only if there are no others.

    >>> unique_words("Rotate the token, rotate!")
    ['rotate', 'token']
    """
    words = list(dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word in words if word not in STOP_WORDS] or words


def content(entry: Entry) -> str:
    """Return the text of an entry that the baselines search, its fields joined by blanks."""
    return " ".join(value for name in CONTENT if (value := getattr(entry, name)))


def quote(term: str) -> str:
    """Quote a term as an FTS5 string, in which operators and quotes are plain text.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'
