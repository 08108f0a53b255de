"""Which queries vary together: those of one `group`, those that ask the same, and whatever these two join.

A question that was asked five times is one piece of evidence, not five. So queries whose texts have the same
letters and digits are one unit everywhere, in whatever scope they were asked: the words and the vector that every
list starts from are the same, and a unit that is too large costs labels, one that is too small a wrong word.

Queries that ask nearly the same are proposed as groups. Two are alike where their vectors are close, or, with or
without vectors, where they share nearly all shingles, as when one was retyped. Shingles find no paraphrases: a
question on another person has more of them in common than the same in other words (docs/tuning.md). Queries that
name different numbers are never alike. Entries with the same content are found here, too.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from unicodedata import category, normalize

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.systems.soleri import examples
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.dataset import LOGGED, Dataset, Matrix


def lack_groups(queries: Sequence[Query]) -> bool:
    """Whether no query has a group, though there are at least two scopes, and at least three queries a scope."""
    scopes = {str(query.filters) for query in queries}
    return not any(query.group for query in queries) and 2 <= len(scopes) <= len(queries) / 3


def wording(text: str) -> str:
    """The letters and digits of a text with their marks, without case; of a text without any, all but white space.

    >>> wording("Where's the KEY?") == wording("wheres  the key")
    True
    """
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    kept, inside = [], False
    for character in folded:
        kind = category(character)[0]
        inside = kind in "LN" or (inside and kind in "MC")  # a mark or joiner belongs to the letter before it
        if inside and kind != "C":
            kept.append(character)
    return "".join(kept) or "".join(folded.split())


def questions(queries: Sequence[Query]) -> int:
    """How many different questions these queries ask."""
    return len({wording(query.text) for query in queries})


def unit_numbers(queries: Sequence[Query]) -> Indices:
    """Number what varies as one, from 0 in the order of first appearance; int64[Q]."""
    first: dict[tuple[str, str], int] = {}
    pairs = []
    for i, query in enumerate(queries):
        keys = [("text", wording(query.text)), *([("group", query.group)] if query.group else [])]
        pairs += [(first.setdefault(key, i), i) for key in keys]
    return components(pairs, len(queries))


def components(pairs: Sequence[tuple[int, int]], size: int) -> Indices:
    """Number the sets that pairs join, from 0 in the order of first appearance; int64[size]."""
    above = list(range(size))

    def first(i: int) -> int:
        while above[i] != i:
            above[i] = i = above[above[i]]
        return i

    for pair in pairs:
        low, high = sorted(map(first, pair))
        above[high] = low
    return np.unique([first(i) for i in range(size)], return_inverse=True)[1].astype(np.int64)


def joined(unit: Indices, pairs: Sequence[tuple[int, int]]) -> Indices:
    """The units int64[Q] with those that pairs of queries join taken together; int64[Q]."""
    ends = [(int(unit[a]), int(unit[b])) for a, b in pairs]
    return components(ends, int(unit.max(initial=-1)) + 1)[unit]


COSINE = 0.92
SHARED = 0.75
"""The least cosine of two vectors, and the least share of all shingles (Jaccard) that two texts have in common."""
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
    unit, texts = unit_numbers(queries), [query.text for query in queries]
    known: dict[tuple[str, ...], int] = {}  # numbers are equal for texts that name the same ones
    numbers = np.array([known.setdefault(named_numbers(text), len(known)) for text in texts], dtype=np.int64)
    pairs = set(by_shingles(texts, unit, numbers)) if queries else set()
    if dataset.query_vectors:
        place = {query.id: index for index, query in enumerate(dataset.queries)}
        vectors = dataset.query_vectors[min(dataset.query_vectors)]
        pairs |= set(by_vectors(vectors[[place[query.id] for query in queries]], unit, numbers))
    return sorted(pairs)


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


SHOWN = 3
"""Groups that are named, and ids of each."""


def duplicates(entries: Iterable[Entry]) -> list[list[str]]:
    """List the ids of entries with the same content, one list for each content, in the order of the entries.

    The content is what Soleri compares: title, text, type, domain, tags in any order and examples, without
    white space around them. Entries without title and text are never duplicates.

    >>> duplicates([Entry("a", title="x"), Entry("b", title="y"), Entry("c", title=" x ")])
    [['a', 'c']]
    """
    titled = (entry for entry in entries if entry.title.strip() or entry.text.strip())
    return _repeated((_content(entry), entry.id) for entry in titled)


def _content(entry: Entry) -> tuple[str | tuple[str, ...], ...]:
    texts = (entry.title, entry.text, entry.type, entry.domain.lower(), *examples(entry))
    return (*map(str.strip, texts), tuple(sorted(entry.tags)))


def asked_again(queries: Iterable[Query]) -> list[list[str]]:
    """List the ids of queries that ask the same (`groups.wording`), in the order of the queries."""
    return _repeated((wording(query.text), query.id) for query in queries)


def _repeated(keys: Iterable[tuple[Hashable, str]]) -> list[list[str]]:
    """The ids of every key that has several."""
    groups: dict[Hashable, list[str]] = {}
    for key, id_ in keys:
        groups.setdefault(key, []).append(id_)
    return [ids for ids in groups.values() if len(ids) > 1]


def duplicates_in_words(groups: Sequence[Sequence[str]]) -> str:
    """Describe duplicates in one line, with their number and the first of them; empty when there are none."""
    if not groups:
        return ""
    repeat = counted(sum(len(ids) - 1 for ids in groups), "entry repeats", "entries repeat")
    return f"{repeat} the content of another: {_first(groups)}"


def asked_again_in_words(queries: Iterable[Query]) -> str:
    """The same of queries that ask the same."""
    if not (groups := asked_again(queries)):
        return ""
    repeat = counted(sum(len(ids) - 1 for ids in groups), "query repeats", "queries repeat")
    return f"{repeat} the text of another, and equal texts count once: {_first(groups)}"


def _first(groups: Sequence[Sequence[str]]) -> str:
    named = [[*(shown(id_, 60) for id_ in ids[:SHOWN]), *(["..."] * (len(ids) > SHOWN))] for ids in groups[:SHOWN]]
    return "; ".join([*map(", ".join, named), *(["..."] * (len(groups) > SHOWN))])


def judged(dataset: Dataset, queries: Iterable[Query]) -> tuple[Query, ...]:
    """Keep the queries that can be scored: with judgments, an answer, and not for simulating feedback."""
    labelled = (query for query in queries if query.id in dataset.qrels and query.answerable)
    return tuple(query for query in labelled if query.split != LOGGED)
