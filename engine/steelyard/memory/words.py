"""The words of texts of every language, and of code, and in which language a text is.

A word is a run of letters, digits and marks (UAX #29 without its rules for punctuation), in NFC and small letters.
Where a script puts no blanks between words, it is an overlapping pair of letters, as Lucene's CJKAnalyzer makes
them. Words of other scripts than Latin are stemmed by the language of their script; Latin ones by that of the
text, which its stop words tell. Stemmers and stop words are Snowball's; English has the 33 of Lucene.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import Stemmer

from steelyard.base.files import data

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""
ENGLISH = ("english",)
STEMMERS = tuple(name for name in Stemmer.algorithms() if "porter" not in name)
BY_SCRIPT = {"CYRILLIC": "russian", "DEVANAGARI": "hindi"}
BY_SCRIPT |= {language.upper(): language for language in ("arabic", "armenian", "greek", "tamil")}
"""The language by which the words of a script are stemmed, by the first word of the names of its letters."""

_PROGRAMMERS = r"(?<!\w)(?:[cC]\+\+|[cCfF]#(?!\w)|\.(?:net|NET|Net)(?!\w))"
"""Words of programmers that letters alone do not spell."""
_ASCII = {False: re.compile(rf"\w\w+|{_PROGRAMMERS}"), True: re.compile(rf"{_PROGRAMMERS}|\w+")}
"""Words of ASCII text, with or without those of one letter."""
_VOWEL_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u093c]"
)
"""Marks of Hebrew, Arabic and Hindi, and the stroke that only stretches a word: most people write without them."""
_WIDTHS = re.compile("[\uff01-\uffef]+")
"""Letters of full and half width."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: no blank parts the words, or endings stick to them."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""The parts of an identifier: getUserById, deploy_pipeline, HTTPServer, parseURL2."""
_TURKISH = str.maketrans({"I": "\u0131", "\u0130": "i"})
MIN_HITS = 2
"""Different stop words of a language that a text of it holds at least, and more than of any other."""
MIN_SHARE = 0.02
"""The least share of the texts, of those whose language was told, that makes it a language of a memory."""


@cache
def _scripts(one_letter: bool) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of words, of runs without blanks, and of their letters; marks stay with the letter before them."""
    scanned = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(chr(code) for code in scanned if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    letter = rf"[{_UNSPACED}][{marks}\u200c\u200d]*"
    more = "*" if one_letter else "+"
    # The second of these finds no other words than the third, and most words ten times as fast.
    words = rf"[0-9A-Za-z_][0-9A-Za-z_]{more}+(?![^\x00-\x7f])|\w[\w{marks}\u200c\u200d]{more}"
    word = rf"{_PROGRAMMERS}|{words}|[{_UNSPACED}]"
    return re.compile(word), re.compile(rf"((?:{letter})+)"), re.compile(letter)


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language; none where Snowball has no list."""
    return STOP_WORDS if language == "english" else stop_lists().get(language, frozenset())


@cache
def stop_lists() -> dict[str, frozenset[str]]:
    """Snowball's lists by language, which PostgreSQL distributes; English ones tell the language alone."""
    return {language: frozenset(words.split()) for language, words in data(__package__, "stop_words.json").items()}


def language_of(text: str, among: Sequence[str] = ()) -> str:
    """The language whose stop words a text of Latin letters holds, of those `among` or of all.

    Empty where there are too few, or as many of two languages.

    >>> language_of("Die Sicherung liegt auf dem Server und wird nachts geschrieben")
    'german'
    """
    words = set(re.findall(r"[^\W\d_]{2,}", unicodedata.normalize("NFC", text).lower()))
    hits = Counter({one: len(words & own) for one, own in stop_lists().items() if not among or one in among})
    (first, most), (_, second) = [*hits.most_common(2), ("", 0), ("", 0)][:2]
    return first if most >= MIN_HITS and most > second else ""


def languages_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The languages of a memory's Latin texts, the most common first; English where nothing tells."""
    counts = Counter(language for text in texts if (language := language_of(text)))
    least = MIN_SHARE * counts.total()
    order = sorted(counts, key=lambda language: (-counts[language], language))
    return tuple(language for language in order if counts[language] >= least) or ENGLISH


@cache
def stemmer(language: str) -> Any:  # noqa: ANN401 -- a bound method of C
    """The function that stems a word of a language."""
    return lru_cache(200_000)(Stemmer.Stemmer(language, 0).stemWord)


@lru_cache(200_000)
def by_script(word: str) -> str:
    """The language of the script of a word; empty for Latin, and where Snowball has none."""
    return "" if word.isascii() else BY_SCRIPT.get(unicodedata.name(word[0], "").partition(" ")[0], "")


def split(text: str, one_letter: bool = False, identifiers: str = "whole", language: str = "") -> list[str]:
    """Split a text into words in small letters.

    A run of a script that puts no blanks between words gives overlapping pairs of letters; a letter that stands
    alone there is a word.

    >>> split("The C++ tokens of getUserById", identifiers="both")
    ['the', 'c++', 'tokens', 'of', 'getuserbyid', 'get', 'user', 'by', 'id']
    """
    found = runs(text, one_letter, identifiers == "whole" and language != "turkish")
    return [word for run in found for word in within(run, one_letter, identifiers, language)]


def runs(text: str, one_letter: bool, small: bool) -> list[str]:
    """What `within` splits into words, each by itself; in `small` letters where no more is to be told of them."""
    if text.isascii():
        return _ASCII[one_letter].findall(text.lower() if small else text)
    text = _WIDTHS.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return _scripts(one_letter)[0].findall(_VOWEL_POINTS.sub("", unicodedata.normalize("NFC", text)))


@lru_cache(200_000)
def within(found: str, one_letter: bool, identifiers: str, language: str) -> tuple[str, ...]:
    """The words in a run: pairs of letters where no blanks part words, an identifier, its parts, or both."""
    words: list[str] = []
    for part in [found] if found.isascii() else _scripts(one_letter)[1].split(found):
        if not part.isascii() and _scripts(one_letter)[1].fullmatch(part):
            letters = _scripts(one_letter)[2].findall(part)
            words += map("".join, pairwise(letters)) if len(letters) > 1 else letters
        elif part:
            small = (part.translate(_TURKISH) if language == "turkish" else part).lower().replace("i\u0307", "i")
            parted = part.isascii() and not (part == small and part.isalpha())  # small letters alone are one part
            pieces = _PARTS.findall(part) if identifiers != "whole" and parted else []
            several = [piece.lower() for piece in pieces if len(piece) > 1]
            words += [small] if identifiers == "both" or not several else []
            words += several if several != [small] or identifiers == "split" else []
    return tuple(words)


def unique_words(text: str) -> list[str]:
    """List the lower-cased words, each once; stop words only if there are no others.

    >>> unique_words("Rotate the token, rotate!")
    ['rotate', 'token']
    """
    found = list(dict.fromkeys(split(text)))
    return [word for word in found if word not in STOP_WORDS] or found
