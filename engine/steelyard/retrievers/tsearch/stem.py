"""The English stemmer of PostgreSQL 15: Snowball 2, also known as Porter2.

PyStemmer 3 implements a later version of the algorithm. It stems about one word in five hundred differently,
such as "added" (ad here, add there), so it would miss what the database finds. Source: the algorithm's
description on snowballstem.org. Step 0, apostrophes, is omitted: the lexer never leaves one inside a word.
"""

from __future__ import annotations

import re
from functools import lru_cache


def _table(pairs: str) -> dict[str, str]:
    """Endings and what replaces them, from pairs such as ``enci:ence li:``."""
    return dict(pair.split(":") for pair in pairs.split())


_IRREGULAR = _table(
    "skis:ski skies:sky dying:die lying:lie tying:tie idly:idl gently:gentl ugly:ugli early:earli only:onli "
    "singly:singl sky:sky news:news howe:howe atlas:atlas cosmos:cosmos bias:bias andes:andes"
)
_FINISHED = ("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed")

_VOWEL, _CONSONANT = "[aeiouy]", "[^aeiouy]"
_REGION = re.compile(rf"{_CONSONANT}*+{_VOWEL}++{_CONSONANT}")
_IRREGULAR_REGION = re.compile("gener|commun|arsen")
_CONSONANT_Y = re.compile(rf"(^|{_VOWEL})y")
_SHORT_END = re.compile(rf"(?:{_CONSONANT}{_VOWEL}[^aeiouywxY]|^{_VOWEL}{_CONSONANT})$")

_STEP_2 = _table(
    "tional:tion enci:ence anci:ance abli:able entli:ent izer:ize ization:ize ational:ate ation:ate ator:ate "
    "alism:al aliti:al alli:al fulness:ful ousli:ous ousness:ous iveness:ive iviti:ive biliti:ble bli:ble "
    "ogi:og fulli:ful lessli:less li:"
)
_STEP_3 = _table("tional:tion ational:ate alize:al icate:ic iciti:ic ical:ic ful: ness: ative:")
_STEP_4 = _table("al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ism: ate: iti: ous: ive: ize: ion:")
_BEFORE = {"ogi": "l", "li": "cdeghkmnrt", "ion": "st"}
"""The letters of which one has to precede a suffix."""


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Stem a word in lower case.

    >>> [stem(word) for word in ("rotating", "generalization", "skies", "added", "is")]
    ['rotat', 'general', 'sky', 'ad', 'is']
    """
    if len(word) <= 2:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = _CONSONANT_Y.sub(r"\1Y", word)
    first, second = _regions(word)
    word = _plural(word)
    if word in _FINISHED:
        return word
    word = _final_y(_past(word, first))
    word = _replaced(word, _STEP_2, first)
    word = _replaced(word, _STEP_3, first, second)
    word = _replaced(word, _STEP_4, second)
    return _final_e_or_l(word, first, second).replace("Y", "y")


def _regions(word: str) -> tuple[int, int]:
    """Where R1 and R2 start: after the first consonant that follows a vowel, and the same again inside R1."""
    match = _IRREGULAR_REGION.match(word) or _REGION.match(word)
    first = match.end() if match else len(word)
    match = _REGION.match(word, first)
    return first, match.end() if match else len(word)


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and re.search(_VOWEL, word[:-2]):
        return word[:-1]
    return word


def _past(word: str, first: int) -> str:
    """Step 1b: -eed, -ed, -ing, with -ly or not; the rest is given back its -e or loses a double letter."""
    suffix = next((end for end in ("eedly", "ingly", "edly", "eed", "ing", "ed") if word.endswith(end)), "")
    rest = word[: len(word) - len(suffix)]
    if suffix.startswith("ee"):
        return rest + "ee" if len(rest) >= first else word
    if not suffix or not re.search(_VOWEL, rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")):
        return rest[:-1]
    return rest + "e" if len(rest) <= first and _SHORT_END.search(rest) else rest


def _final_y(word: str) -> str:
    """Step 1c: -y after a consonant that is not the first letter."""
    return word[:-1] + "i" if len(word) > 2 and word[-1] in "yY" and word[-2] not in "aeiouy" else word


def _replaced(word: str, endings: dict[str, str], region: int, second: int = 0) -> str:
    """Steps 2 to 4: the longest ending that fits is replaced if it lies in the region, else nothing is."""
    for start in range(max(0, len(word) - 7), len(word) - 1):
        suffix = word[start:]
        if suffix in endings:
            fits = start >= region and (suffix not in _BEFORE or word[start - 1] in _BEFORE[suffix])
            return word[:start] + endings[suffix] if fits and (suffix != "ative" or start >= second) else word
    return word


def _final_e_or_l(word: str, first: int, second: int) -> str:
    """Step 5."""
    rest, last = word[:-1], len(word) - 1
    if word.endswith("e"):
        return rest if last >= second or (last >= first and not _SHORT_END.search(rest)) else word
    return rest if word.endswith("ll") and last >= second else word
