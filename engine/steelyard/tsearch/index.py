"""An inverted index in memory, which finds and ranks the texts that match a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.tsearch.english import TsVector, tsvector
from steelyard.tsearch.query import And, Node, Or, Phrase, Term, matches
from steelyard.tsearch.rank import ranker


class TsIndex:
    """The texts of one scope, found by their lexemes.

    >>> index = TsIndex.of([("a", "deploy to staging"), ("b", "deployed")])
    >>> index.search(And((Term("deploy"), Term("stage"))))
    [('a', 0.09850085526704788)]
    """

    def __init__(self, ids: list[str], vectors: list[TsVector]) -> None:
        self.ids, self.vectors = ids, vectors
        self.postings: dict[str, list[int]] = {}
        for number, vector in enumerate(vectors):
            for lexeme in vector:
                self.postings.setdefault(lexeme, []).append(number)

    @classmethod
    def of(cls, texts: Iterable[tuple[str, str]]) -> TsIndex:
        """Index (id, text) pairs, keeping their order."""
        ids, vectors, shared = [], [], dict[tuple[int, ...], tuple[int, ...]]()
        for id_, text in texts:
            ids.append(id_)
            # Most lexemes occur once in a text, at one of a few hundred positions, so equal tuples are shared.
            vectors.append({lexeme: shared.setdefault(at, at) for lexeme, at in tsvector(text).items()})
        return cls(ids, vectors)

    def search(self, node: Node | None) -> list[tuple[str, float]]:
        """Return (id, ts_rank) of every matching text, in the order of the index; [] for an empty query."""
        if node is None:
            return []
        score, found = ranker(node), self._candidates(node)
        numbers: Sequence[int] = range(len(self.ids)) if found is None else sorted(found)
        if not _by_presence(node):
            numbers = [number for number in numbers if matches(node, self.vectors[number])]
        return [(self.ids[number], score(self.vectors[number])) for number in numbers]

    def _candidates(self, node: Node) -> set[int] | None:
        """The texts with enough lexemes to match; None where a text without any of them may match."""
        match node:
            case Term(lexeme):
                return set(self.postings.get(lexeme, ()))
            case Phrase(lexemes):
                return set.intersection(*(set(self.postings.get(lexeme, ())) for lexeme in lexemes))
            case And(parts):
                known = [found for part in parts if (found := self._candidates(part)) is not None]
                return set.intersection(*known) if known else None
            case Or(parts):
                sides = [self._candidates(part) for part in parts]
                return None if None in sides else set().union(*(side for side in sides if side is not None))
            case _:
                return None


def _by_presence(node: Node) -> bool:
    """Whether containing the lexemes is enough to match, so that every candidate matches."""
    match node:
        case And(parts) | Or(parts):
            return all(map(_by_presence, parts))
        case _:
            return isinstance(node, Term)
