"""Finds and ranks the texts that match a query, by their postings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import compress

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.retrievers.tsearch.english import TsVector, tsvector
from steelyard.retrievers.tsearch.expression import And, Lexeme, LexemePhrase, Node, Or, lexemes_of, matches
from steelyard.retrievers.tsearch.rank import ranker
from steelyard.stores.postings import Counted, Read


class TsIndex:
    """The texts of one scope, found by their lexemes.

    >>> index = TsIndex.of([("a", "deploy to staging"), ("b", "deployed")])
    >>> index.best(And((Lexeme("deploy"), Lexeme("stage"))))
    [('a', 0.09850085526704788)]
    """

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    @classmethod
    def of(cls, texts: Iterable[tuple[str, str]]) -> TsIndex:
        """Index (id, text) pairs, keeping their order."""
        return cls(Counted.of((id_, flat(tsvector(text))) for id_, text in texts))

    def best(self, node: Node, filters: Filters = EVERYTHING, depth: int | None = None) -> list[tuple[str, float]]:
        """Return (id, ts_rank) of the best matching texts that pass the filters, ties by ascending id."""
        numbers = self._counted.numbers
        admitted = numbers[self._counted.within(filters)[numbers]] if filters else numbers
        matching, scores = self._matches(node, admitted)
        every = np.zeros(len(self._counted.lengths))
        every[matching] = scores
        return self._counted.best(every, matching, depth)

    def _matches(self, node: Node, admitted: Indices) -> tuple[Indices, Floats]:
        """The texts among the admitted ones (ascending) that match, and their ranks."""
        candidates = self._candidates(node)
        numbers = admitted if candidates is None else np.intersect1d(candidates, admitted, assume_unique=True)
        score, vectors = ranker(node), self._vectors(set(lexemes_of(node)), numbers)
        if not _by_presence(node):
            kept = [matches(node, vector) for vector in vectors]
            numbers, vectors = numbers[np.array(kept, dtype=bool)], list(compress(vectors, kept))
        return numbers, np.array([score(vector) for vector in vectors], dtype=np.float64)

    def _vectors(self, lexemes: Iterable[str], numbers: Indices) -> list[TsVector]:
        """What the texts hold of these lexemes."""
        vectors: list[TsVector] = [{} for _ in numbers]
        for lexeme in lexemes:
            posting = self._counted.posting(lexeme)
            places = np.minimum(np.searchsorted(posting.at, numbers), max(len(posting.at) - 1, 0))
            held = np.flatnonzero(posting.at[places] == numbers) if len(posting.at) else places[:0]
            ends = np.cumsum(posting.counts)
            for row, end, count in zip(held, ends[places[held]], posting.counts[places[held]], strict=True):
                vectors[row][lexeme] = tuple(posting.positions[end - count : end].tolist())
        return vectors

    def _candidates(self, node: Node) -> Indices | None:
        """The texts with enough lexemes to match; None where a text without any of them may match."""
        match node:
            case Lexeme(lexeme):
                return self._counted.posting(lexeme).at
            case LexemePhrase(lexemes):
                return reduce(_both, (self._counted.posting(lexeme).at for lexeme in lexemes))
            case And(parts):
                known = [texts for part in parts if (texts := self._candidates(part)) is not None]
                return reduce(_both, known) if known else None
            case Or(parts):
                sides = [self._candidates(part) for part in parts]
                return None if any(side is None for side in sides) else np.unique(np.concatenate(sides))  # type: ignore[arg-type]  # none is None
            case _:
                return None


def flat(vector: TsVector) -> Read:
    """The lexemes of a text, each as often as it has positions, and those."""
    pairs = [(lexeme, place) for lexeme, places in vector.items() for place in places]
    return [lexeme for lexeme, _ in pairs], [place for _, place in pairs]


def _both(first: Indices, second: Indices) -> Indices:
    return np.intersect1d(first, second, assume_unique=True)


def _by_presence(node: Node) -> bool:
    """Whether containing the lexemes is enough to match, so that every candidate matches."""
    match node:
        case And(parts) | Or(parts):
            return all(map(_by_presence, parts))
        case _:
            return isinstance(node, Lexeme)
