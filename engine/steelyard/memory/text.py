"""Splits texts into words, drops stop words and stems."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

import Stemmer

from steelyard.memory.entry import Entry

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: the content of an entry, without its metadata."""

_NAMES = r"(?<!\w)(?:c\+\+|[cf]#(?!\w))"
"""Words of programmers that letters alone do not spell."""
_ASCII_WORD = re.compile(rf"{_NAMES}|\w\w+")
_VOWEL_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
"""Marks of Hebrew and Arabic, and the stroke that only stretches a word: most people write without them."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: no blank parts the words, or endings stick to them."""
_english = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    stem: str = _english.stemWord(word)
    return stem


@lru_cache(maxsize=1)
def _scripts() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of words, of runs without blanks, and of their letters; marks stay with the letter before them."""
    scanned = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(chr(code) for code in scanned if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    letter = rf"[{_UNSPACED}][{marks}\u200c\u200d]*"
    word = rf"{_NAMES}|\w[\w{marks}\u200c\u200d]+|[{_UNSPACED}]"
    return re.compile(word), re.compile(rf"((?:{letter})+)"), re.compile(letter)


def words(text: str) -> list[str]:
    """Split a text into lower-cased words of two or more characters, in NFC and without vowel points.

    A run of a script that puts no blanks between words gives overlapping pairs of letters, as Lucene's CJKAnalyzer
    makes them; a letter that stands alone there is a word.

    >>> words("The C++ tokens of JWT"), words("密钥轮换")
    (['the', 'c++', 'tokens', 'of', 'jwt'], ['密钥', '钥轮', '轮换'])
    """
    if text.isascii():
        return _spaced(text)
    _, run, letter = _scripts()
    parts = (part for found in _spaced(_VOWEL_POINTS.sub("", text)) for part in run.split(found))
    return [
        piece
        for part in parts
        for piece in (_pairs(letter.findall(part)) if run.fullmatch(part) else filter(None, [part]))
    ]


def _spaced(text: str) -> list[str]:
    """The words between blanks and punctuation, whatever their script, in NFC."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _scripts()[0].findall(unicodedata.normalize("NFC", text).lower())


def _pairs(letters: list[str]) -> list[str]:
    return ["".join(pair) for pair in pairwise(letters)] or letters


def terms(text: str) -> list[str]:
    """Split a text into words, stemmed (Snowball's English), without stop words.

    >>> terms("The tokens are rotating, JWT-style")
    ['token', 'rotat', 'jwt', 'style']
    """
    return [_stem(word) for word in words(text) if word not in STOP_WORDS]


def unique_words(text: str) -> list[str]:
    """List the lower-cased words between blanks, each once; stop words only if there are no others.

    >>> unique_words("Rotate the token, rotate!")
    ['rotate', 'token']
    """
    found = list(dict.fromkeys(_spaced(text)))
    return [word for word in found if word not in STOP_WORDS] or found


def content(entry: Entry) -> str:
    """Return the text of an entry that the baselines search, its fields joined by blanks."""
    return " ".join(value for name in CONTENT if (value := getattr(entry, name)))


def quote(term: str) -> str:
    """Quote a term as an FTS5 string, in which operators and quotes are plain text.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'
