"""Full-text search by PostgreSQL's rules for English, without PostgreSQL, and its match as a scorer (MoltNet).

`websearch` reads typed text as a query, `matches` and `ranker` apply a query to one text, `best` to all texts of a
scope. All were compared with PostgreSQL 15.

Ranks are those of ``ts_rank`` with its default weights and normalisation 0, in single precision as PostgreSQL
computes it. Every lexeme of a text has the weight w = 0.1. A query of one lexeme, or one that is an *or* or a
negation as a whole, adds ``w (1 + 1/4 + ... + 1/n^2) / 1.64493406685`` for each of its lexemes that occurs n
times, and divides by the number of its distinct lexemes, including negated ones. An *and* or a phrase uses pairs
of positions of different lexemes: a pair at distance d > 0 counts ``c = w sqrt(g)`` with ``g = 1 / (1.005 + 0.05
exp(d/1.5 - 2))``, or 1e-30 beyond 100, and all pairs ``1 - (1 - c1)(1 - c2)...``; without a pair the rank is
1e-20. Source: the notes on MoltNet, section ts_rank. The places where PostgreSQL 15 rounds, and its order of
lexemes (by bytes), were found by comparing bits. Ranks that are equal here are equal there, so ties are the
same.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import compress, product

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.retrievers.cache import ScopeCache
from steelyard.retrievers.english import LETTER, MAX_POSITIONS, TsVector, lexemes, shape_of, tsvector
from steelyard.retrievers.kinds import Parts, ScorerKind
from steelyard.stores.base import Found, Readable, TextSearch
from steelyard.stores.postings import Analysis, Counted, Read

# Queries, which print as PostgreSQL prints a tsquery: 'cach' & !( 'npm' <-> 'audit' )


@dataclass(frozen=True, slots=True)
class Phrase:
    """Lexemes at fixed distances; `offsets` are counted from the first one, so they ascend from 0.

    >>> print(Phrase(("state", "art"), (0, 3)), "|", Phrase(("cach",)))
    'state' <3> 'art' | 'cach'
    """

    lexemes: tuple[str, ...]
    offsets: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        quoted = ["'{}'".format(lexeme.replace("\\", "\\\\").replace("'", "''")) for lexeme in self.lexemes]
        steps = [later - offset for offset, later in zip(self.offsets, self.offsets[1:], strict=False)]
        more = zip(steps, quoted[1:], strict=True)
        return quoted[0] + "".join(f" <{step if step > 1 else '-'}> {lexeme}" for step, lexeme in more)


@dataclass(frozen=True, slots=True)
class Not:
    """A negation, written `times` times: ``--word`` requires the word again, and prints both signs."""

    part: Node
    times: int = 1

    def __str__(self) -> str:
        return "!" * self.times + _inside(self.part, self)


@dataclass(frozen=True, slots=True)
class Joined:
    """Two or more parts, joined by ``&`` or ``|``."""

    sign: str
    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return f" {self.sign} ".join(_inside(part, self) for part in self.parts)


Node = Phrase | Not | Joined


def _inside(part: Node, whole: Node) -> str:
    """Print a part of a node, in brackets where it binds less tightly."""
    return f"( {part} )" if _binding(part) < _binding(whole) else str(part)


def _binding(node: Node) -> int:
    if isinstance(node, Joined):
        return "|&".index(node.sign)
    return 3 if isinstance(node, Not) else 2 if len(node.lexemes) > 1 else 4


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
    """Parse typed text to a query, like ``websearch_to_tsquery('english', text)``; None for one of stop words and
    signs alone.

    Words are joined by and, or by or where ``or`` is written between them, which binds less tightly. Quotes make
    a phrase, as does a word that the lexer splits (``min_leaf``, ``a-b``). A ``-`` before a word or a quote
    negates it, also with blanks between. ``! & | ( ) <`` only separate words; other signs are left to the lexer.
    Stop words are removed, and so is what they leave empty: a negation, a side of an ``or``, or the whole query.

    >>> print(websearch('"security vulnerability" +audit -npm'))
    'secur' <-> 'vulner' & 'audit' & !'npm'
    """
    shape, place, signs, after_operand = shape_of(text), 0, 0, False
    sides: list[list[Node]] = [[]]
    while match := (after_operand and _OR.match(shape, place)) or _PIECE.match(shape, place):
        place = match.end()
        if match.re is _OR:
            sides.append([])
            after_operand = False
        elif match["minus"]:
            signs, after_operand = signs + 1, False
        else:
            start, end = match.span("word" if match["word"] else "quoted")
            if placed := list(lexemes(text[start:end])):
                words, positions = zip(*placed, strict=True)
                phrase = Phrase(words, tuple(position - positions[0] for position in positions))
                sides[-1].append(Not(phrase, signs) if signs else phrase)
            signs, after_operand = 0, True
    return _joined("|", [node for side in sides if (node := _joined("&", side))])


def _joined(sign: str, parts: Sequence[Node]) -> Node | None:
    """Join the parts to one node; a single part is returned unchanged."""
    return Joined(sign, tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def matches(node: Node, vector: TsVector) -> bool:
    """Whether the text of the vector matches the query.

    >>> matches(websearch("deploy -staging"), {"deploy": (1,)})
    True
    """
    match node:
        case Phrase((word,)):
            return word in vector
        case Phrase(words, offsets):
            if any(word not in vector for word in words):
                return False
            starts = set(vector[words[0]])
            for word, offset in zip(words, offsets, strict=True):
                starts.intersection_update([position - offset for position in vector[word]])
            return bool(starts)
        case Not(part, times):
            return matches(part, vector) != bool(times % 2)
        case Joined(sign, parts):
            return (any if sign == "|" else all)(matches(part, vector) for part in parts)


def lexemes_of(node: Node) -> Iterator[str]:
    """Iterate over the lexemes of the query in the order written, including negated ones."""
    match node:
        case Phrase(words):
            yield from words
        case Not(part):
            yield from lexemes_of(part)
        case Joined(_, parts):
            for part in parts:
                yield from lexemes_of(part)


# Ranks

NO_PAIR = 1e-20
"""The rank of an *and* without a pair of positions; it keeps ``deploy -staging`` above no match."""
_FAR = 100
_FULL = 0.9999997019767761
"""The rank at which adjacent words, which count most, add nothing more in single precision."""


def single(value: float) -> float:
    """Round to single precision."""
    return array("f", [value])[0]


def _count_table() -> list[float]:
    """The contribution of a lexeme that is present n times, for n from 0."""
    table, total = [0.0], 0.0
    for n in range(1, MAX_POSITIONS + 1):
        total = single(total + single(_WEIGHT / (n * n)))
        table.append(single(single(_WEIGHT + total) - _WEIGHT) / 1.64493406685)
    return table


def _pair_table() -> list[float]:
    """The contribution of a pair at distance d, for d from 0 to _FAR + 1; the last applies to all beyond."""
    near = [single(1 / (1.005 + 0.05 * math.exp(d / 1.5 - 2))) for d in range(_FAR + 1)]
    weights = single(_WEIGHT * _WEIGHT)
    return [single(math.sqrt(single(weights * g))) for g in (*near, single(1e-30))]


_WEIGHT = single(0.1)
_BY_COUNT, _BY_DISTANCE = _count_table(), _pair_table()


def ranker(node: Node) -> Callable[[TsVector], float]:
    """Return a function that ranks texts that match the query, 0 or more.

    >>> ranker(websearch("cache"))({"cach": (3,)})
    0.0607927106320858
    """
    items = sorted(set(lexemes_of(node)))
    joined = isinstance(node, Phrase) or (isinstance(node, Joined) and node.sign == "&")

    def score(vector: TsVector) -> float:
        present = [vector[item] for item in items if item in vector]
        by_pairs = joined and len(items) > 1
        return _of_pairs(present) if by_pairs else _of_counts(tuple(map(len, present)), len(items))

    return score


@lru_cache(maxsize=10_000)  # thousands of texts share a few counts
def _of_counts(counts: tuple[int, ...], items: int) -> float:
    total = 0.0
    for count in counts:
        total = single(total + _BY_COUNT[count])
    return single(total / items)


def _of_pairs(present: list[tuple[int, ...]]) -> float:
    register = array("f", [0.0])
    for index, later in enumerate(present):
        for earlier in present[:index]:
            for here, there in product(later, earlier):
                if here != there:
                    c, total = _BY_DISTANCE[min(abs(here - there), _FAR + 1)], register[0]
                    register[0] = 1 - (1 - total) * (1 - c) if total else c
            if register[0] >= _FULL:
                return register[0]
    return register[0] or NO_PAIR


# All texts of a scope


def flat(vector: TsVector) -> Read:
    """The lexemes of a text, each as often as it has positions, and those."""
    pairs = [(lexeme, place) for lexeme, places in vector.items() for place in places]
    return [lexeme for lexeme, _ in pairs], [place for _, place in pairs]


def best(
    counted: Counted, node: Node, filters: Filters = EVERYTHING, depth: int | None = None
) -> list[tuple[str, float]]:
    """Return (id, ts_rank) of the best matching texts that pass the filters, ties by ascending id."""
    numbers = counted.numbers
    if filters:
        numbers = numbers[counted.within(filters)[numbers]]
    matching, scores = _matching(counted, node, numbers), np.zeros(len(counted.lengths))
    vectors = _vectors(counted, set(lexemes_of(node)), matching)
    scores[matching] = list(map(ranker(node), vectors))
    return counted.best(scores, matching, depth)


def _matching(counted: Counted, node: Node, numbers: Indices) -> Indices:
    """Those of some texts, ascending, that match."""
    match node:
        case Phrase(words):
            found: Indices = reduce(_both, (counted.posting(word).at for word in words), numbers)
            if len(words) == 1:
                return found
            held = [matches(node, vector) for vector in _vectors(counted, set(words), found)]
            return np.array(list(compress(found, held)), dtype=np.int64)
        case Not(part, times):
            found = _matching(counted, part, numbers)
            return np.setdiff1d(numbers, found, assume_unique=True) if times % 2 else found
        case Joined("|", parts):
            return np.unique(np.concatenate([_matching(counted, part, numbers) for part in parts]))
        case Joined(_, parts):
            return reduce(lambda left, part: _matching(counted, part, left), parts, numbers)


def _both(first: Indices, second: Indices) -> Indices:
    return np.intersect1d(first, second, assume_unique=True)


def _vectors(counted: Counted, words: set[str], numbers: Indices) -> list[TsVector]:
    """What the texts hold of these lexemes."""
    vectors: list[TsVector] = [{} for _ in numbers]
    for word in words:
        posting = counted.posting(word)
        held, places = np.flatnonzero(np.isin(numbers, posting.at)), np.flatnonzero(np.isin(posting.at, numbers))
        for row, end, count in zip(held, np.cumsum(posting.counts)[places], posting.counts[places], strict=True):
            vectors[row][word] = tuple(posting.positions[end - count : end].tolist())
    return vectors


def analysis(search: TextSearch) -> Analysis:
    """How a store counts the lexemes of its entries: with their positions."""
    text = search.text
    name = f"tsearch {text.__module__}.{text.__qualname__}"
    return Analysis(name, lambda entry: flat(tsvector(text(entry))), search.fields)


class TsRetriever:
    """Searches by web-search syntax and ranks by ts_rank; the scope acts before the cut.

    ts_rank uses no statistics of the corpus, so one index serves every scope.
    """

    def __init__(self, store: Readable, search: TextSearch) -> None:
        counting = analysis(search)
        self._counted = ScopeCache(store, lambda scope: store.counted(counting, scope))

    def retrieve(self, query: Query, depth: int | None) -> list[Found]:
        """See Retriever.retrieve; a query of stop words and signs alone finds nothing."""
        asked = websearch(query.keywords)
        found = [] if asked is None else best(self._counted(EVERYTHING), asked, query.filters, depth)
        return [Found(id_, score, place) for place, (id_, score) in enumerate(found, 1)]


@dataclass(frozen=True)
class LexicalScorer:
    """Scores 1 for a candidate that matches the whole query, or when the query excludes nothing; else 0.

    A negation is a lexical constraint: it also drops what only the vectors found, unless the positive
    part matches too. Source: MoltNet's document, negation tradeoff.
    """

    store: Readable
    text: Callable[[Entry], str]

    def score(self, query: Query, ids: Sequence[str]) -> Floats:
        """See Scorer.score."""
        asked = websearch(query.keywords)
        if asked is None or not has_negation(asked):
            return np.ones(len(ids))
        held = {e.id for e in self.store.get(ids) if matches(asked, tsvector(self.text(e)))}
        return np.array([float(id_ in held) for id_ in ids], dtype=np.float64)


def has_negation(node: Node) -> bool:
    """Whether MoltNet treats the query as negated: its printed form has a "!", be it that of a file path."""
    return "!" in str(node)


def _lexical(parts: Parts) -> LexicalScorer:
    index = parts.reading.index
    if not isinstance(index, TextSearch):
        raise ConfigError(f"{parts.name} has no exclusions, so it has no signal lexical; drop the stage")
    return LexicalScorer(parts.store, index.text)


LEXICAL = ScorerKind(name="lexical", build=_lexical)
