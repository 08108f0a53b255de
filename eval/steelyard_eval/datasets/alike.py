"""Finds queries that ask nearly the same as an earlier one, to be proposed as groups.

Two queries are alike where their vectors are close, or, with or without vectors, where they share nearly all
shingles, as when one was retyped. Shingles find no paraphrases: a question on another person has more of them in
common than the same in other words (docs/tuning.md). Queries that name different numbers are never alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from unicodedata import normalize

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.memory.query import Query
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.embeddings import Matrix
from steelyard_eval.datasets.groups import unit_numbers, wording

COSINE = 0.92
SHARED = 0.75
"""The least cosine of two vectors, and the least share of all shingles (Jaccard) that two texts have in common.
How many paraphrases they find: `tests/benchmarks/paraphrases.py`."""
LENGTH = 3
"""Characters of a shingle."""
BLOCK = 64
"""Queries that are compared with all others at a time: memory is in proportion to their number, not its square."""
BANDS, ROWS = 20, 5
"""Tries of `by_shingles`, and random orders of each; two texts that share s agree with 1 - (1 - s^5)^20."""

Pair = tuple[int, int]


def alike(dataset: Dataset, queries: Sequence[Query]) -> list[Pair]:
    """Pairs of queries that ask nearly the same and are not one unit, by their numbers, ascending.

    By vectors, where any are recorded, each query is paired with the first one that it is alike.
    """
    unit, numbers = unit_numbers(queries), _numbers([query.text for query in queries])
    pairs = set(by_shingles([query.text for query in queries], unit, numbers)) if queries else set()
    if dataset.query_vectors:
        place = {query.id: index for index, query in enumerate(dataset.queries)}
        vectors = dataset.query_vectors[min(dataset.query_vectors)]
        pairs |= set(by_vectors(vectors[[place[query.id] for query in queries]], unit, numbers))
    return sorted(pairs)


def _numbers(texts: Sequence[str]) -> Indices:
    """int64[n]: equal for texts that name the same numbers."""
    known: dict[tuple[str, ...], int] = {}
    return np.array([known.setdefault(named_numbers(text), len(known)) for text in texts], dtype=np.int64)


def named_numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, in any order.

    >>> named_numbers("from 9 to 17")
    ('17', '9')
    """
    return tuple(sorted(re.findall(r"\d+", normalize("NFKC", text))))


def by_vectors(vectors: Matrix, unit: Indices, numbers: Indices) -> Iterator[Pair]:
    """Each query with the first one whose vector is close; float[n, d], and int64[n] of units and of numbers."""
    rows = np.asarray(vectors, dtype=np.float32)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    first = np.full(len(rows), -1)
    for begin in range(0, len(rows), BLOCK):
        a, b = (places + begin for places in np.nonzero(rows[begin : begin + BLOCK] @ rows[begin:].T >= COSINE))
        new = (a < b) & (first[b] < 0) & (unit[a] != unit[b]) & (numbers[a] == numbers[b])
        later, index = np.unique(b[new], return_index=True)
        first[later] = a[new][index]
    return ((int(first[i]), int(i)) for i in np.flatnonzero(first >= 0))


def by_shingles(texts: Sequence[str], unit: Indices, numbers: Indices) -> Iterator[Pair]:
    """Pairs of texts that share nearly all shingles.

    Candidates agree in `ROWS` least ranks of their shingles under random orders, in one of `BANDS` tries (Broder,
    SEQUENCES 1997); each is compared with the first of those it agrees with. All but 1 in 200 pairs that share
    three quarters do agree.
    """
    known: dict[str, int] = {}
    rows = [[known.setdefault(piece, len(known)) for piece in sorted(shingles(wording(text)))] for text in texts]
    flat, begin = np.array([piece for row in rows for piece in row]), np.cumsum([0, *map(len, rows)])[:-1]
    rng, tried = np.random.default_rng(0), set()
    for _ in range(BANDS):
        orders = [rng.permutation(len(known)) for _ in range(ROWS)]
        least = np.stack([np.minimum.reduceat(order[flat], begin) for order in orders])
        _, first, bucket = np.unique(least, axis=1, return_index=True, return_inverse=True)
        a, b = first[bucket], np.arange(len(rows))
        new = (a < b) & (unit[a] != unit[b]) & (numbers[a] == numbers[b])
        tried |= set(zip(a[new].tolist(), b[new].tolist(), strict=True))
    return (pair for pair in sorted(tried) if shared(*(set(rows[i]) for i in pair)) >= SHARED)


def shingles(text: str) -> set[str]:
    """The runs of `LENGTH` characters of a text, or the whole of a shorter one."""
    return {text[i : i + LENGTH] for i in range(max(1, len(text) - LENGTH + 1))}


def shared(one: Set[object], other: Set[object]) -> float:
    """The share of all shingles that two texts have in common (Jaccard).

    >>> shared(shingles("keys"), shingles("key"))
    0.5
    """
    return len(one & other) / len(one | other)
