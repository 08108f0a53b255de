"""Words: how a text is split into them, which do not count, and their stems."""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

from steelyard.entry import Entry

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: what an entry says, not how it is filed."""

_WORD = re.compile(r"\w\w+")
_english = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    stem: str = _english.stemWord(word)
    return stem


def terms(text: str) -> list[str]:
    """Lower-cased words of two or more characters, without stop words, stemmed (Snowball English).

    >>> terms("The tokens are rotating, JWT-style")
    ['token', 'rotat', 'jwt', 'style']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def unique_words(text: str) -> list[str]:
    """Lower-cased words of two or more characters, each once: without stop words, unless there are no others.

    >>> unique_words("Rotate the token, rotate!")
    ['rotate', 'token']
    """
    words = list(dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word in words if word not in STOP_WORDS] or words


def content(entry: Entry) -> str:
    """The text of an entry that the baselines search, fields joined by blanks."""
    return " ".join(value for name in CONTENT if (value := getattr(entry, name)))


def quote(term: str) -> str:
    """A term as an FTS5 string: operators and quotes inside are text.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'
