"""Splits text into tokens by the rules of PostgreSQL's default parser.

The first of `_PATTERNS` that matches is the next token: an e-mail address before a host, a host before a file
path, a path before a number, a hyphenated compound before a word. A compound is followed by its parts, and a
URL by its host and path. Markup, scripts, character entities and protocols (``http://``) are skipped.

Where no pattern matches, one character is dropped, and everything after it up to the next letter, digit, sign
or slash: ``./a`` is a path at the start of a text, and only ``/a`` is after a blank.

The rules were found by comparing with PostgreSQL 15 on all short strings over small alphabets and on random
texts. One difference keeps the time linear: a name has at most 127 dotted labels, and a label at most 63 parts
joined by _ or -.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

LETTER, MARK, OTHER = "é", "\u0301", "¤"
"""One stand-in for each class of characters beyond ASCII, so that patterns need no tables of Unicode."""

_A, _N, _W = "A-Za-z", "A-Za-z0-9", f"A-Za-z{LETTER}{MARK}"
_LABEL = rf"[{_N}]++(?:[_-][{_N}]++){{0,62}}+"
_POWER = r"[0-9]++[eE][+-]?[0-9]++"
_HOST = rf"(?!{_POWER})(?:{_LABEL}\.){{1,126}}[{_A}]{{2,}}+(?![0-9])(?::[0-9]++)?"
_NAME = rf"[{_N}_][{_N}_-]*+(?:\.[{_N}_][{_N}_-]*+)*+"
_BELOW = rf"/(?:(?:\.{{1,2}}|~)/){{0,64}}(?:[.~]?{_NAME}|\.\.(?![^/]))"
_PART = rf"(?:[0-9]*+[{_A}{LETTER}]|[0-9]++{MARK})[0-9{_W}]*+"
_FOLDER = rf"[{_A}]++(?![0-9{_W}])|(?=[{_W}]*+[0-9]){_PART}"

_PATTERNS = {
    "plain": rf"[{_A}]++(?![^ ,;()'\"])",
    "email": rf"(?!{_POWER})(?:{_LABEL}(?:\.{_LABEL}){{0,126}}+|{_FOLDER})@{_HOST}",
    "host": rf"{_HOST}(?P<path>/[!#-;=?-Z\[\]_a-z~]++)?",
    "number": rf"[+-]?(?:[0-9]++\.)?{_POWER}",
    "file": rf"(?:(?:~|\.{{1,2}}|[0-9]++)?{_BELOW}|~{_NAME}|(?:{_FOLDER})(?:{_BELOW}|\.{_NAME}))(?:{_BELOW})*+",
    "parent": r"\.\.(?![^/])",
    "skipped": rf"[{_A}]++://|&(?:[{_A}:_][{_N}:_.{LETTER}-]*+|#[0-9]++|#[xX][0-9A-Fa-f]++);",
    "version": r"[0-9]++(?:\.[0-9]++){2,}+",
    "decimal": r"[+-]?[0-9]++\.[0-9]++(?!\.[0-9])",
    "compound": rf"{_PART}(?:-{_PART})++",
    "word": _PART,
    "integer": r"[+-][0-9]++(?!\.[0-9]++\.[0-9])|[0-9]++",
}
_DROPPED = re.compile(rf"[^{_N}{LETTER}+\-/&]*+")

_BLANK = r" \t\n\r\f\v"
_ATTRIBUTES = rf"(?:[#%&./0-9:=?_~{_BLANK}{_A}-]|\"[^\"]*+\"|'[^']*+')*+"
_TAG = rf"(?:/[{_A}]|[{_A}:_])[{_N}:_.{LETTER}-]*+(?:/|[{_BLANK}]{_ATTRIBUTES})?"
_MARKUP = re.compile(rf"<(?:{_TAG}|![Dd]{_ATTRIBUTES}|\?x{_ATTRIBUTES})>")
_CODE = re.compile(rf"<(/?)(?:script|style)[{_BLANK}>]", re.IGNORECASE)
"""The begin, or with a slash the end, of text that is skipped, even when the tag is never closed."""


class Token(NamedTuple):
    """A token with its kind: word, compound, number, host, path, file ..."""

    kind: str
    text: str


def tokens(text: str) -> Iterator[Token]:
    """Iterate over the tokens of a text in order, compounds and URLs before their parts.

    >>> [token.text for token in tokens("min_leaf of v1.2.3, see a-b")]
    ['min', 'leaf', 'of', 'v1.2.3', 'see', 'a-b', 'a', 'b']
    """
    for chunk, first in chunks(text):
        yield from chunk_tokens(chunk, first)


def chunks(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at blanks and markup, which no token contains; with each chunk, whether no blank precedes it.

    >>> list(chunks("./a b"))
    [('./a', True), ('b', False)]
    """
    for piece in _between_markup(text) if "<" in text else (text,):
        first = not piece[:1].isspace()
        for chunk in piece.split():
            yield chunk, first
            first = False


def chunk_tokens(chunk: str, first: bool) -> Iterator[Token]:
    """Iterate over the tokens of one chunk; `first` is true when no blank precedes it."""
    shape = shape_of(chunk)
    position = 0 if first else _after_dropped(shape, 0)
    while position < len(chunk):
        match = _token().match(shape, position)
        if match is None:
            position = _after_dropped(shape, position + 1)
            continue
        yield from _named(match, chunk)
        position = match.end()
        if match.lastgroup == "compound" and shape.startswith("-", position):
            position = _after_dropped(shape, position + 1)


@cache
def _token() -> re.Pattern[str]:
    """Compiled when a text is first read: most programs import this and read none."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))


def _named(match: re.Match[str], chunk: str) -> Iterator[Token]:
    """The token of a match, and the tokens that are part of it."""
    kind, (start, end) = str(match.lastgroup), match.span()
    text = chunk[start:end]
    if kind == "host" and match["path"]:
        path = match.start("path")
        yield from (Token("url", text), Token("host", chunk[start:path]), Token("path", chunk[path:end]))
    elif kind != "skipped":
        yield Token(kind, text)
        if kind == "compound":
            yield from (Token("part", part) for part in text.split("-"))


def _after_dropped(shape: str, position: int) -> int:
    match = _DROPPED.match(shape, position)
    return match.end() if match else position


def _between_markup(text: str) -> Iterator[str]:
    """The text before, between and after tags and comments, without scripts and style sheets."""
    shape, start, read = shape_of(text), 0, True
    for begin, end in _markup(shape):
        if read:
            yield text[start : begin + 1]  # with the "<", because `..` is a path only at the end of a text
        if code := _CODE.match(shape, begin):
            read = bool(code[1])
        start = end
    if read:
        yield text[start:]


def _markup(shape: str) -> Iterator[tuple[int, int]]:
    """Start and end of tags and comments, and of a "<" that begins a script without being a tag."""
    begin, last_comment = 0, shape.rfind("-->")
    while (begin := shape.find("<", begin)) >= 0:
        if shape.startswith("<!--", begin) and begin + 4 <= last_comment:
            end = shape.index("-->", begin + 4) + 3
        else:
            match = _MARKUP.match(shape, begin)
            end = match.end() if match else begin + 1
        if end > begin + 1 or _CODE.match(shape, begin):
            yield begin, end
        begin = end


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
