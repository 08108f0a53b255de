"""Texts: their words, stop words and stems, and templates of the text that is embedded for an entry."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise

import Stemmer

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.base.fields import TEXT_FIELDS
from steelyard.memory.entry import Entry

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: the content of an entry, without its metadata."""

_PROGRAMMERS = r"(?<!\w)(?:c\+\+|[cf]#(?!\w))"
"""Words of programmers that letters alone do not spell."""
_ASCII_WORD = re.compile(rf"{_PROGRAMMERS}|\w\w+")
_VOWEL_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
"""Marks of Hebrew and Arabic, and the stroke that only stretches a word: most people write without them."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: no blank parts the words, or endings stick to them."""
_stem = lru_cache(200_000)(Stemmer.Stemmer("english", 0).stemWord)


@cache
def _scripts() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of words, of runs without blanks, and of their letters; marks stay with the letter before them."""
    scanned = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(chr(code) for code in scanned if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    letter = rf"[{_UNSPACED}][{marks}\u200c\u200d]*"
    word = rf"{_PROGRAMMERS}|\w[\w{marks}\u200c\u200d]+|[{_UNSPACED}]"
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
    split: list[str] = []
    for part in parts:
        if run.fullmatch(part):
            letters = letter.findall(part)
            split += map("".join, pairwise(letters)) if len(letters) > 1 else letters
        elif part:
            split.append(part)
    return split


def _spaced(text: str) -> list[str]:
    """The words between blanks and punctuation, whatever their script, in NFC."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _scripts()[0].findall(unicodedata.normalize("NFC", text).lower())


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


def fts_quote(term: str) -> str:
    """Quote a term as an FTS5 string, in which operators and quotes are plain text.

    >>> fts_quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'


TEMPLATE_FIELDS = TEXT_FIELDS | {"tags", "tag"}
"""The fields that a template may name."""


def template_fields(template: str) -> tuple[str, ...]:
    """Return the fields that a template names, in the order of their first use.

    Raises ConfigError listing everything in braces that is not a plain field name.

    >>> template_fields("{title} said: {text}")
    ('title', 'text')
    >>> template_fields("{titel}")
    Traceback (most recent call last):
    steelyard.base.errors.ConfigError: unknown template field 'titel'; did you mean 'title'?
    """
    return tuple(dict.fromkeys(name for line in _parse(template) for _, name in line if name))


def render(template: str, entry: Entry) -> str:
    r"""Fill the template from the entry; absent fields are empty, tags are joined by blanks.

    A line whose fields are all empty is left out, and a line with ``{tag}`` is repeated for every tag. Templates
    come with data sets, so they are parsed and never passed to `str.format`: they may name fields only, without
    attributes, indexes, conversions or formats; ConfigError as above. Doubled braces are literal braces.

    >>> render("{title} said: {text} {{{tags}}}", Entry("1", title="Ann", text="Hi", tags=("a", "b")))
    'Ann said: Hi {a b}'
    >>> render("{title}\ntag:{tag}", Entry("1", title="Ann", tags=("a", "b")))
    'Ann\ntag:a\ntag:b'
    """
    lines, every = [], " ".join(entry.tags)
    for pieces in _parse(template):
        names = {name for _, name in pieces if name}
        for tag in entry.tags if "tag" in names else ("",):
            tags = {"": "", "tag": tag, "tags": every}
            values = [tags[name] if name in tags else str(getattr(entry, name)) for _, name in pieces]
            if any(values) or not names:
                texts = (literal + value for (literal, _), value in zip(pieces, values, strict=True))
                lines.append("".join(texts))
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _parse(template: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Each line as pairs of literal text and the field that follows it, or the empty string."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template {quote(template)} is broken: {error}") from None
    problems: list[str] = []
    lines: list[list[tuple[str, str]]] = [[]]
    for literal, name, spec, conversion in pieces:
        if name is not None and name not in TEMPLATE_FIELDS:
            problems.append(f"unknown template field {quote(name)}{nearest(name, TEMPLATE_FIELDS)}")
        if spec or conversion:
            written = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            problems.append(f"template field {quote(name)} has a format {quote(written)}, which is not allowed")
        *whole, last = literal.split("\n")
        for text in whole:
            lines[-1].append((text, ""))
            lines.append([])
        lines[-1].append((last, name or ""))
    if problems:
        raise ConfigError("; ".join(problems))
    return tuple(map(tuple, lines))
