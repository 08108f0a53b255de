"""Full-text queries as trees that print, and that texts can be matched against.

A node prints as PostgreSQL prints a tsquery: ``'cach' & !( 'npm' <-> 'audit' )``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.retrievers.tsearch.english import TsVector


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One lexeme, anywhere in the text."""

    lexeme: str

    def __str__(self) -> str:
        doubled = self.lexeme.replace("\\", "\\\\").replace("'", "''")
        return f"'{doubled}'"


@dataclass(frozen=True, slots=True)
class LexemePhrase:
    """Lexemes at fixed distances; `offsets` are counted from the first lexeme, so they ascend from 0.

    >>> print(LexemePhrase(("state", "art"), (0, 3)))
    'state' <3> 'art'
    """

    lexemes: tuple[str, ...]
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        text = str(Lexeme(self.lexemes[0]))
        for lexeme, before, offset in zip(self.lexemes[1:], self.offsets, self.offsets[1:], strict=False):
            text += f" <{offset - before if offset - before > 1 else '-'}> {Lexeme(lexeme)}"
        return text


@dataclass(frozen=True, slots=True)
class Not:
    """A negation, written `times` times: ``--word`` requires the word again, and prints both signs."""

    part: Node
    times: int = 1

    def __str__(self) -> str:
        return "!" * self.times + _inside(self.part, self)


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction of two or more parts."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " & ".join(_inside(part, self) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction of two or more parts."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " | ".join(_inside(part, self) for part in self.parts)


Node = Lexeme | LexemePhrase | Not | And | Or

_BINDING: tuple[type, ...] = (Or, And, LexemePhrase, Not, Lexeme)
"""From the loosest binding to the tightest."""


def _inside(part: Node, whole: Node) -> str:
    """Print a part of a node, in brackets where it binds less tightly."""
    looser = _BINDING.index(type(part)) < _BINDING.index(type(whole))
    return f"( {part} )" if looser else str(part)


def matches(node: Node, vector: TsVector) -> bool:
    """Whether the text of the vector matches the query.

    >>> matches(And((Lexeme("deploy"), Not(Lexeme("stage")))), {"deploy": (1,)})
    True
    """
    match node:
        case Lexeme(lexeme):
            return lexeme in vector
        case LexemePhrase(lexemes, offsets):
            return _phrase_matches(lexemes, offsets, vector)
        case Not(part, times):
            return matches(part, vector) != bool(times % 2)
        case And(parts):
            return all(matches(part, vector) for part in parts)
        case Or(parts):
            return any(matches(part, vector) for part in parts)


def _phrase_matches(lexemes: tuple[str, ...], offsets: tuple[int, ...], vector: TsVector) -> bool:
    if any(lexeme not in vector for lexeme in lexemes):
        return False
    starts = set(vector[lexemes[0]])
    for lexeme, offset in zip(lexemes, offsets, strict=True):
        starts.intersection_update([position - offset for position in vector[lexeme]])
    return bool(starts)


def has_negation(node: Node) -> bool:
    """Whether MoltNet treats the query as negated, which it does when the printed query contains a "!".

    A file path with a "!" counts too, because MoltNet only looks at the printed form.
    """
    return "!" in str(node)


def lexemes_of(node: Node) -> Iterator[str]:
    """Iterate over the lexemes of the query in the order written, including negated ones."""
    match node:
        case Lexeme(lexeme):
            yield lexeme
        case LexemePhrase(lexemes):
            yield from lexemes
        case Not(part):
            yield from lexemes_of(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from lexemes_of(part)
