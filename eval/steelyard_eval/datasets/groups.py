"""Which queries vary together: those of one `group`, those that ask the same, and whatever these two join.

A question that was asked five times is one piece of evidence, not five. So queries whose texts have the same
letters and digits are one unit everywhere, in whatever scope they were asked: the words and the vector that every
list starts from are the same, and a unit that is too large costs labels, one that is too small a wrong word.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, normalize

import numpy as np

from steelyard.base.arrays import Indices
from steelyard.memory.query import Query


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
