"""PostgreSQL's English configuration: turns tokens into lexemes, and a text into its tsvector."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from steelyard.retrievers.tsearch.lexer import chunk_tokens, chunks
from steelyard.retrievers.tsearch.stem import stem

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

STOP_WORDS = frozenset(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themselves what which who whom this that these
    those am is are was were be been being have has had having do does did doing a an the and but if or
    because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where
    why how all any both each few more most other some such no nor not only own same so than too very s
    t can will just don should now""".split()  # noqa: SIM905 -- a list literal of 127 words reads worse
)
"""The 127 words that PostgreSQL's English configuration drops; each still counts as a position."""

_STEMMED = frozenset(("plain", "word", "compound", "part"))
_DIGITS = frozenset("0123456789")
_LETTER_BY_LETTER = str.maketrans({"\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}": "i", "\u03a3": "\u03c3"})
"""Letters that str.lower would turn into two, or lower differently at the end of a word (Greek sigma)."""


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


def lexemes(text: str) -> Iterator[tuple[str, int]]:
    """Iterate over the lexemes of a text in order, each with its position; stop words leave gaps.

    >>> list(lexemes("cross-validation of it"))
    [('cross-valid', 1), ('cross', 2), ('valid', 3)]
    """
    position = 0
    for chunk, first in chunks(text):
        for lexeme in _chunk_lexemes(chunk, first):
            position += position < MAX_POSITION
            if lexeme:
                yield lexeme, position


@lru_cache(maxsize=200_000)
def _chunk_lexemes(chunk: str, first: bool) -> tuple[str, ...]:
    """Return one lexeme for each word of the chunk, empty for a stop word."""
    if chunk.isascii() and chunk.isalpha() and len(chunk) <= MAX_BYTES:  # most of them: one plain word
        return (_lexeme(chunk, True),)
    tokens = (token for token in chunk_tokens(chunk, first) if len(token.text.encode()) <= MAX_BYTES)
    return tuple(_lexeme(token.text, token.kind in _STEMMED) for token in tokens)


def _lexeme(word: str, stemmed: bool) -> str:
    """The word in lower case, stemmed if it consists of letters; empty for a stop word. Accents are kept."""
    word = word.translate(_LETTER_BY_LETTER).lower()
    if not stemmed or not _DIGITS.isdisjoint(word):
        return word
    if word in STOP_WORDS:
        return ""
    return stem(word) if len(word.encode()) <= MAX_STEMMED else word
