"""English text as PostgreSQL's full-text search reads it: tokens, their stems, and a text's tsvector.

The first token of `english.toml` that matches is the next one: an e-mail address before a host, a host before a
file path, a path before a number, a hyphenated compound before a word. A compound is followed by its parts, and a
URL by its host and path. Markup, scripts, character entities and protocols (``http://``) are skipped.

Where no other pattern matches, one character is dropped, and everything after it up to the next letter, digit,
sign or slash: ``./a`` is a path at the start of a text, and only ``/a`` is after a blank.

The rules were found by comparing with PostgreSQL 15 on all short strings over small alphabets and on random
texts. One difference keeps the time linear: a name has at most 127 dotted labels, and a label at most 63 parts
joined by _ or -.

The stemmer is PostgreSQL 15's: Snowball 2, also known as Porter2, from snowballstemmer 2. PyStemmer 3 implements a
later version, which stems about one word in five hundred differently, such as "added" (ad here, add there), so it
would miss what the database finds.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from itertools import chain, repeat
from string import Template

from steelyard.memory.words import stop_lists

TsVector = dict[str, tuple[int, ...]]
"""From lexemes to their positions in the text, ascending from 1."""

MAX_POSITION = 16_383
"""The largest position; all words beyond it have this position."""
MAX_POSITIONS = 255
"""The largest number of positions of one lexeme; later ones are dropped."""
MAX_BYTES = 2_047
"""The length of the longest word that is indexed; longer words are ignored."""
MAX_STEMMED = 1_000
"""The length in bytes of the longest word that is stemmed."""

STOP_WORDS = stop_lists()["english"]
"""The 127 words that PostgreSQL's English configuration drops; each still counts as a position."""

_STEMMABLE = re.compile("['y]|(?:s|e|ed|er|al|ic|ing|ion|[ae]nt|ll|li|iti|ism|[ae]nci|ogi|ator|ful)$")
"""What a word has of which any step of the stemmer takes something: one in four has nothing."""
_STEMMED = frozenset(("plain", "word", "compound", "part"))
_DIGITS = frozenset("0123456789")
_LETTER_BY_LETTER = str.maketrans({"\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}": "i", "\u03a3": "\u03c3"})
"""Letters that str.lower would turn into two, or lower differently at the end of a word (Greek sigma)."""

LETTER, MARK, OTHER = "é", "\u0301", "¤"
"""One stand-in for each class of characters beyond ASCII, so that patterns need no tables of Unicode."""

_PATTERNS = tomllib.loads(resources.files(__package__ or "").joinpath("english.toml").read_text("utf-8"))
_KNOWN = {"LETTER": LETTER, "MARK": MARK}
for _name, _text in _PATTERNS["parts"].items():
    _KNOWN[_name] = Template(_text).substitute(_KNOWN)
_TOKENS = {kind: Template(text).substitute(_KNOWN) for kind, text in _PATTERNS["tokens"].items()}
_MARKUP = re.compile(_KNOWN["MARKUP"])
_CODE = re.compile(_KNOWN["CODE"], re.IGNORECASE)
"""The begin, or with a slash the end, of text that is skipped, even when the tag is never closed."""


def tsvector(text: str) -> TsVector:
    """Return the lexemes of a text with their positions, like ``to_tsvector('english', text)``.

    >>> tsvector("The tokens rotate; a token expires")
    {'token': (2, 5), 'rotat': (3,), 'expir': (6,)}
    """
    positions: dict[str, list[int]] = {}
    for lexeme, position in lexemes(text):
        places = positions.setdefault(lexeme, [])
        if len(places) < MAX_POSITIONS and (not places or places[-1] < position):
            places.append(position)
    return {lexeme: tuple(places) for lexeme, places in positions.items()}


def lexemes(text: str) -> list[tuple[str, int]]:
    """The lexemes of a text in order, each with its position; stop words leave gaps.

    >>> lexemes("cross-validation of it")
    [('cross-valid', 1), ('cross', 2), ('valid', 3)]
    """
    found: list[str] = []
    for piece in _between_markup(text) if "<" in text else (text,):
        chunks = piece.split()  # no token contains a blank or markup
        if chunks and not piece[0].isspace():
            found += _lexemes_of(chunks.pop(0), True)
        found += chain.from_iterable(map(_lexemes_of, chunks, repeat(False)))
    return [(lexeme, min(position, MAX_POSITION)) for position, lexeme in enumerate(found, 1) if lexeme]


@lru_cache(maxsize=200_000)
def _lexemes_of(chunk: str, first: bool) -> tuple[str, ...]:
    """One lexeme for each word of what stands between blanks, empty for a stop word; see `tokens_of`."""
    word = chunk[:-1] if chunk[-1] in ",.;:)" else chunk
    if word.isascii() and word.isalpha() and len(word) <= MAX_BYTES:  # most of them: one plain word
        return (_lexeme("plain", word),)
    return tuple(_lexeme(*token) for token in tokens_of(chunk, first) if len(token[1].encode()) <= MAX_BYTES)


def _lexeme(kind: str, word: str) -> str:
    """The word in lower case, stemmed if it consists of letters; empty for a stop word. Accents are kept."""
    word = word.translate(_LETTER_BY_LETTER).lower()
    if kind not in _STEMMED or not _DIGITS.isdisjoint(word):
        return word
    if word in STOP_WORDS:
        return ""
    return stem(word) if len(word.encode()) <= MAX_STEMMED else word


def tokens_of(chunk: str, first: bool) -> Iterator[tuple[str, str]]:
    """The tokens of one chunk, with their kinds; `first` is true when no blank precedes it.

    >>> [token for _, token in tokens_of("v1.2.3:a-b", True)]
    ['v1.2.3', 'a-b', 'a', 'b']
    """
    pattern, shape = _token(), shape_of(chunk)
    begin = 0 if first else next(re.finditer(_KNOWN["DROPPED"], shape)).end()
    for match in pattern.finditer(shape, begin):
        kind = str(match.lastgroup)
        start, end = match.span("whole" if kind == "compound" else kind)
        text = chunk[start:end]
        if kind == "host" and match["path"]:
            path = match.start("path")
            yield from (("url", text), ("host", chunk[start:path]), ("path", chunk[path:end]))
        elif kind not in ("skipped", "dropped"):
            yield kind, text
            if kind == "compound":
                yield from (("part", part) for part in text.split("-"))


@cache
def _token() -> re.Pattern[str]:
    """Compiled when a text is first read: most programs import this and read none."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()))


def _between_markup(text: str) -> Iterator[str]:
    """The text before, between and after tags and comments, without scripts and style sheets."""
    shape, start, begin, read = shape_of(text), 0, 0, True
    last_comment = shape.rfind("-->")
    while (begin := shape.find("<", begin)) >= 0:
        code, markup, end = _CODE.match(shape, begin), _MARKUP.match(shape, begin), begin + 1
        if shape.startswith("<!--", begin) and begin + 4 <= last_comment:
            end = shape.index("-->", begin + 4) + 3
        elif markup:
            end = markup.end()
        if code or end > begin + 1:
            if read:
                yield text[start : begin + 1]  # with the "<", because `..` is a path only at the end of a text
            read = bool(code[1]) if code else read
            start = end
        begin = end
    if read:
        yield text[start:]


class _Classes(dict[int, str]):
    """The stand-in of each character beyond ASCII, looked up on first use."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))
        ascii_or_class = chr(code) if code < 128 else _CLASSES.get(kind, _CLASSES.get(kind[0], OTHER))
        self[code] = ascii_or_class
        return ascii_or_class


_CLASSES = {"L": LETTER, "Nl": LETTER, "Nd": LETTER, "M": MARK, "Z": " "}
_shapes = _Classes(dict.fromkeys((0xA0, 0x2007, 0x202F), OTHER))  # no-break spaces do not separate


def shape_of(text: str) -> str:
    """Replace every character beyond ASCII by the stand-in of its class."""
    return text if text.isascii() else text.translate(_shapes)


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Stem a word in lower case.

    >>> [stem(word) for word in ("rotating", "generalization", "skies", "added", "is")]
    ['rotat', 'general', 'sky', 'ad', 'is']
    """
    if not _STEMMABLE.search(word):
        return word
    # Imported when a text is first read, because 28 languages come with it.
    from snowballstemmer.english_stemmer import EnglishStemmer

    stemmed: str = EnglishStemmer().stemWord(word)  # an object keeps its word, so threads must not share one
    return stemmed
