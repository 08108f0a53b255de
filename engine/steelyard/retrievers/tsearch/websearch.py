"""Parses typed text to a query, like ``websearch_to_tsquery('english', text)``.

Words are joined by and, or by or where ``or`` is written between them, which binds less tightly. Quotes make a
phrase, as does a word that the lexer splits (``min_leaf``, ``a-b``). A ``-`` before a word or a quote negates
it, also with blanks between. ``! & | ( ) <`` only separate words; other signs are left to the lexer. Stop words
are removed, and so is what they leave empty: a negation, a side of an ``or``, or the whole query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from steelyard.retrievers.tsearch.english import lexemes
from steelyard.retrievers.tsearch.expression import And, Lexeme, LexemePhrase, Node, Not, Or
from steelyard.retrievers.tsearch.lexer import LETTER, shape_of

_BLANKS = r" \t\n\r\f\v"
_SEPARATORS = rf"{_BLANKS}!&|()<"
_PIECE = re.compile(
    rf"[{_SEPARATORS}]*+(?:(?P<minus>-)|\"(?P<quoted>[^\"]*+)\"?|(?P<word>[^\"{_SEPARATORS}][^\":{_SEPARATORS}]*+))"
)
_OR = re.compile(
    rf"[{_SEPARATORS}]*+or(?![A-Za-z0-9{LETTER}_-])(?=.[{_BLANKS}]*+[^{_BLANKS}])",  # a word has to follow
    re.IGNORECASE | re.DOTALL,
)


def websearch(text: str) -> Node | None:
    """Parse a text to a query; None when it contains only stop words and signs.

    >>> print(websearch('"security vulnerability" +audit -npm'))
    'secur' <-> 'vulner' & 'audit' & !'npm'
    """
    sides: list[list[Node]] = [[]]
    for operand, signs in _operands(text):
        if operand is None:
            sides.append([])
        elif node := _phrase(operand):
            sides[-1].append(Not(node, signs) if signs else node)
    return _joined(Or, [node for side in sides if (node := _joined(And, side))])


def _operands(text: str) -> Iterator[tuple[str | None, int]]:
    """Each word or quoted text with the number of its minus signs; None for an ``or`` between two."""
    shape, position, signs, after_operand = shape_of(text), 0, 0, False
    while True:
        if after_operand and (match := _OR.match(shape, position)):
            yield None, 0
            after_operand = False
        elif not (match := _PIECE.match(shape, position)):
            return
        elif match["minus"]:
            signs, after_operand = signs + 1, False
        else:
            start, end = match.span("word" if match["word"] else "quoted")
            yield text[start:end], signs
            signs, after_operand = 0, True
        position = match.end()


def _phrase(text: str) -> Node | None:
    """The lexemes of one operand at their distances in it."""
    placed = list(lexemes(text))
    if len(placed) < 2:
        return Lexeme(placed[0][0]) if placed else None
    first = placed[0][1]
    return LexemePhrase(tuple(lexeme for lexeme, _ in placed), tuple(position - first for _, position in placed))


def _joined(kind: type[And] | type[Or], parts: list[Node]) -> Node | None:
    """Join the parts to one node; a single part is returned unchanged."""
    if len(parts) > 1:
        return kind(tuple(parts))
    return parts[0] if parts else None
