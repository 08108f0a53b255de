"""Which queries vary together: those of one `group`, those that ask the same, and whatever these two join.

A question that was asked five times is one piece of evidence, not five. So queries whose texts have the same
letters and digits are one unit everywhere, in whatever scope they were asked: the words and the vector that every
list starts from are the same, and a unit that is too large costs labels, one that is too small a wrong word.

Queries that ask nearly the same are proposed as groups, and `judged` takes them so until dataset.json says
`"groups": "given"`. Two are alike where their vectors are close, or, with or without vectors, where they share
nearly all shingles, as when one was retyped. Shingles alone find no paraphrases: a question on another person has
more of them in common than the same in other words (docs/evidence/tuning.md). Where both have the same relevant
entries, less is enough. Queries that name different numbers are never alike. Also finds duplicate entries.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from unicodedata import category, normalize

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import quote
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.systems.soleri import examples
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.dataset import LOGGED, Dataset, Matrix
from steelyard_eval.result.structs import Fact, Message


def lack_groups(queries: Sequence[Query]) -> bool:
    """Whether no query has a group, though there are at least two scopes, and at least three queries a scope."""
    scopes = {str(query.filters) for query in queries}
    return not any(q.group and not is_proposed(q) for q in queries) and 2 <= len(scopes) <= len(queries) / 3


_SIGNS = {number: None for number in range(128) if not chr(number).isalnum()}


def normalised_text(text: str) -> str:
    """The letters and digits of a text with their marks, without case; of a text without any, all but white space.

    >>> normalised_text("Where's the KEY?") == normalised_text("wheres  the key")
    True
    """
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    if folded.isascii():  # no marks are in it, and this takes a tenth of the time
        return folded.translate(_SIGNS) or "".join(folded.split())
    kept, inside = [], False
    for character in folded:
        kind = category(character)[0]
        inside = kind in "LN" or (inside and kind in "MC")  # a mark or joiner belongs to the letter before it
        if inside and kind != "C":
            kept.append(character)
    return "".join(kept) or "".join(folded.split())


def questions(queries: Sequence[Query]) -> int:
    """How many different questions these queries ask."""
    return len({query.group if is_proposed(query) else normalised_text(query.text) for query in queries})


def unit_numbers(queries: Sequence[Query]) -> Indices:
    """Number what varies as one, from 0 in the order of first appearance; int64[Q]."""
    first: dict[tuple[str, str], int] = {}
    pairs = []
    for i, query in enumerate(queries):
        keys = [("text", normalised_text(query.text)), *([("group", query.group)] if query.group else [])]
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


COSINE, COSINE_SAME = 0.92, 0.75
SHARED, SHARED_SAME = 0.75, 0.2
"""The least cosine of two vectors, and the least share of all shingles (Jaccard) that two texts have in common;
the second of each where the same entries are relevant."""
Likeness = Callable[[slice], Floats]
PROPOSED = "asks as "  # what the name of a proposed group begins with; the id of its first query follows
LENGTH = 3  # characters of a shingle
SHOWN = 3  # groups that are named, and ids of each
QUERIES_PER_BLOCK = 64
"""Queries that are compared with all others at a time: memory is in proportion to their number, not its square."""


@lru_cache(maxsize=2)  # several verbs of one command ask
def alike(dataset: Dataset, queries: tuple[Query, ...]) -> Indices:
    """`unit_numbers`, with the units that ask nearly the same taken together; int64[Q]."""
    unit, texts = unit_numbers(queries), [query.text for query in queries]
    numbers = _codes(map(named_numbers, texts))
    relevant = [frozenset(id_ for id_, grade in dataset.qrels.get(q.id, {}).items() if grade) for q in queries]
    answers = _codes(own or i for i, own in enumerate(relevant))
    unit = merged(unit, numbers, answers, by_shingles(texts), (SHARED, SHARED_SAME))
    if dataset.query_vectors and queries:
        place = {query.id: index for index, query in enumerate(dataset.queries)}
        vectors = dataset.query_vectors[min(dataset.query_vectors)][[place[query.id] for query in queries]]
        unit = merged(unit, numbers, answers, by_vectors(vectors), (COSINE, COSINE_SAME))
    return unit


def _codes(keys: Iterable[Hashable]) -> Indices:
    """Number keys, equal ones alike, in the order of their first appearance; int64."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def merged(unit: Indices, numbers: Indices, answers: Indices, of: Likeness, least: Sequence[float]) -> Indices:
    """Units int64[Q] with those of queries taken together that are alike and name equal numbers; int64[Q].

    The likeness `of` some queries to all is float[B, Q]; where `answers` are equal the second of `least` will do.
    """
    for begin in range(0, len(unit), QUERIES_PER_BLOCK):
        rows = slice(begin, begin + QUERIES_PER_BLOCK)
        enough = np.where(answers[rows, None] == answers, least[1], least[0])
        a, b = np.nonzero((of(rows) >= enough) & (numbers[rows, None] == numbers))
        ends = np.unique(np.sort([unit[a + begin], unit[b]], axis=0), axis=1)
        unit = components(ends[:, ends[0] < ends[1]].T.tolist(), len(unit))[unit]
    return unit


def is_proposed(query: Query) -> bool:
    """Whether its group is one that was proposed here."""
    return query.group.startswith(PROPOSED)


def with_proposed(dataset: Dataset, queries: Sequence[Query]) -> tuple[Query, ...]:
    """The queries with the groups that they seem to have; a group that queries.jsonl gives stays as it is.

    Where dataset.json says that they are given (`groups`), there are no others.
    """
    if dataset.groups:
        return tuple(queries)
    free = tuple(query for query in queries if not query.group)
    first: dict[int, Query] = {}
    own = {q.id: first.setdefault(unit, q).id for q, unit in zip(free, alike(dataset, free).tolist(), strict=True)}
    asked = Counter(one for one, _ in {(own[query.id], normalised_text(query.text)) for query in free})
    several = {id_ for id_, count in asked.items() if count > 1}  # what is worded alike is one anyway
    named = {id_: PROPOSED + one for id_, one in own.items() if one in several}
    return tuple(replace(query, group=named.get(query.id, query.group)) for query in queries)


def nearly(queries: Sequence[Query]) -> list[Message]:
    """Queries of proposed groups, which count as one question: each with the first one of its group."""
    first: dict[str, str] = {}
    near = [(first.setdefault(query.group, query.id), query.id) for query in queries if is_proposed(query)]
    named = [f"{quote(one)} and {quote(other)}" for one, other in near if one != other]
    facts: dict[str, Fact] = {"count": len(named), "pairs": named[:SHOWN], "more": len(named) > SHOWN}
    facts |= {"queries": len(queries), "units": len(set(unit_numbers(queries).tolist()))}
    return [Message("nearly", facts)] if named else []


def named_numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, in any order.

    >>> named_numbers("from 9 to 17")
    ('17', '9')
    """
    return tuple(sorted(re.findall(r"\d+", normalize("NFKC", text))))


def by_vectors(vectors: Matrix) -> Likeness:
    """The cosines of some of the vectors float[Q, d] with all."""
    rows = np.asarray(vectors, dtype=np.float32)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return lambda some: rows[some] @ rows.T


def by_shingles(texts: Sequence[str]) -> Likeness:
    """The share of all shingles (Jaccard) that some of the texts have in common with each."""
    from scipy.sparse import csr_array  # what only searches has no use for it

    pieces = [sorted(shingles(normalised_text(text))) for text in texts]
    sizes = np.array([len(row) for row in pieces], dtype=np.int64)
    flat = _codes(piece for row in pieces for piece in row)
    shape = len(texts), int(flat.max(initial=-1)) + 1
    held = csr_array((np.ones(len(flat), dtype=np.int32), flat, np.cumsum([0, *sizes])), shape)

    def of(some: slice) -> Floats:
        common = (held[some] @ held.T).toarray()
        return np.asarray(common / (sizes[some, None] + sizes - common), dtype=np.float64)

    return of


def shingles(text: str) -> set[str]:
    """The runs of `LENGTH` characters of a text, or the whole of a shorter one."""
    return {text[i : i + LENGTH] for i in range(max(1, len(text) - LENGTH + 1))}


def duplicates(entries: Iterable[Entry]) -> list[list[str]]:
    """List the ids of entries with the same content, one list for each content, in the order of the entries.

    The content is what Soleri compares: title, text, type, domain, tags in any order and examples, without
    white space around them. Entries without title and text are never duplicates.

    >>> duplicates([Entry("a", title="x"), Entry("b", title="y"), Entry("c", title=" x ")])
    [['a', 'c']]
    """
    groups: dict[bytes, list[str]] = {}  # by a hash: the contents themselves would all be in memory
    for entry in entries:
        if entry.title.strip() or entry.text.strip():
            texts = (entry.title, entry.text, entry.type, entry.domain.lower(), *examples(entry))
            content = repr((*map(str.strip, texts), sorted(entry.tags)))
            groups.setdefault(sha256(content.encode("utf-8", "surrogatepass")).digest(), []).append(entry.id)
    return [ids for ids in groups.values() if len(ids) > 1]


def duplicates_in_words(groups: Sequence[Sequence[str]]) -> str:
    """Describe duplicates in one line, with their number and the first of them; empty when there are none."""
    if not groups:
        return ""
    repeat = counted(sum(len(ids) - 1 for ids in groups), "entry repeats", "entries repeat")
    named = [[*(quote(id_, 60) for id_ in ids[:SHOWN]), *(["..."] * (len(ids) > SHOWN))] for ids in groups[:SHOWN]]
    first = "; ".join([*map(", ".join, named), *(["..."] * (len(groups) > SHOWN))])
    return f"{repeat} the content of another: {first}"


def judged(dataset: Dataset, queries: Iterable[Query]) -> tuple[Query, ...]:
    """Keep what can be scored: with judgments, an answer, and not for simulating feedback; see `with_proposed`."""
    labelled = (query for query in queries if query.id in dataset.qrels and query.answerable)
    return with_proposed(dataset, [query for query in labelled if query.split != LOGGED])


def tuning_queries(dataset: Dataset) -> tuple[tuple[Query, ...], tuple[Query, ...]]:
    """Return the queries to tune on and the queries held out; disjoint, each in file order.

    Tuning uses train, else dev, else all outside test, else all. Held out is test, unless tuning uses it.
    """
    by_split: dict[str, list[Query]] = {}
    for query in dataset.queries:
        by_split.setdefault(query.split, []).append(query)
    test = by_split.pop("test", [])
    outside = tuple(query for query in dataset.queries if query.split not in ("test", LOGGED))
    tuned = tuple(by_split.get("train") or by_split.get("dev") or outside)
    return (tuned, tuple(test)) if tuned else (tuple(test), ())
