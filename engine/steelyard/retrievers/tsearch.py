"""Full-text search by PostgreSQL's rules for English, without PostgreSQL, and its match as a scorer (MoltNet).

`websearch` reads typed text as a query, `best` applies one to the texts of a scope, `ranker` ranks a single text.
All were compared with PostgreSQL 15.

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

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from itertools import accumulate, chain, product

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.retrievers.english import LETTER, MAX_POSITIONS, TsVector, lexemes, shape_of, tsvector
from steelyard.retrievers.kinds import BuildContext, Scorer, ScorerKind
from steelyard.stores.base import ReadableStore, ScoredId, TextSearch
from steelyard.stores.postings import Read, ScopedPostings, WordAnalyzer

# Queries


@dataclass(frozen=True, slots=True)
class Phrase:
    """Lexemes at fixed distances; `offsets` are counted from the first one, so they ascend from 0."""

    lexemes: tuple[str, ...]
    offsets: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Not:
    """A negation, written `times` times: ``--word`` requires the word again."""

    part: "Node"
    times: int = 1


@dataclass(frozen=True, slots=True)
class Joined:
    """Two or more parts, joined by ``&`` or ``|``."""

    sign: str
    parts: "tuple[Node, ...]"


Node = Phrase | Not | Joined

_BLANKS = r" \t\n\r\f\v"
_SEPARATORS = rf"{_BLANKS}!&|()<"
_PIECE = re.compile(
    rf"[{_SEPARATORS}]*+(?:(?P<minus>-)|\"(?P<quote>[^\"]*+)\"?|(?P<word>[^\"{_SEPARATORS}][^\":{_SEPARATORS}]*+))"
)
_OR = re.compile(
    rf"[{_SEPARATORS}]*+or(?![A-Za-z0-9{LETTER}_-])(?=.[{_BLANKS}]*+[^{_BLANKS}])",  # a word has to follow
    re.IGNORECASE | re.DOTALL,
)


def websearch(text: str) -> Node | None:
    """Parse typed text to a query, like ``websearch_to_tsquery('english', text)``.

    None for one of stop words and signs alone.

    Words are joined by and, or by or where ``or`` is written between them, which binds less tightly. Quotes make
    a phrase, as does a word that the lexer splits (``min_leaf``, ``a-b``). A ``-`` before a word or a quote
    negates it, also with blanks between. ``! & | ( ) <`` only separate words; other signs are left to the lexer.
    Stop words are removed, and so is what they leave empty: a negation, a side of an ``or``, or the whole query.

    >>> websearch('-"security vulnerability"')
    Not(part=Phrase(lexemes=('secur', 'vulner'), offsets=(0, 1)), times=1)
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
            start, end = match.span("word" if match["word"] else "quote")
            if placed := list(lexemes(text[start:end])):
                words, positions = zip(*placed, strict=True)
                phrase = Phrase(words, tuple(position - positions[0] for position in positions))
                sides[-1].append(Not(phrase, signs) if signs else phrase)
            signs, after_operand = 0, True
    return _joined("|", [node for side in sides if (node := _joined("&", side))])


def _joined(sign: str, parts: Sequence[Node]) -> Node | None:
    """Join the parts to one node; a single part is returned unchanged."""
    return Joined(sign, tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def phrases(node: Node, negated: bool = False) -> Iterator[tuple[Phrase, bool]]:
    """The phrases of a query in the order written, each with whether it stands below a negation."""
    match node:
        case Phrase():
            yield node, negated
        case Not(part):
            yield from phrases(part, negated=True)
        case Joined(_, parts):
            for part in parts:
                yield from phrases(part, negated)


# Ranks

NO_PAIR = 1e-20
"""The rank of an *and* without a pair of positions; it keeps ``deploy -staging`` above no match."""
_FAR = 100
_FULL = 0.9999997019767761
"""The rank at which adjacent words, which count most, add nothing more in single precision."""


def single(value: float) -> float:
    """Round to single precision."""
    return array("f", [value])[0]


_WEIGHT = single(0.1)
_SUMS = accumulate((single(_WEIGHT / (n * n)) for n in range(1, MAX_POSITIONS + 1)), lambda a, b: single(a + b))
_BY_COUNT = [0.0, *(single(single(_WEIGHT + total) - _WEIGHT) / 1.64493406685 for total in _SUMS)]
"""The contribution of a lexeme that is present n times, for n from 0."""
_NEAR = (single(1 / (1.005 + 0.05 * math.exp(d / 1.5 - 2))) for d in range(_FAR + 1))
_BY_DISTANCE = [single(math.sqrt(single(single(_WEIGHT * _WEIGHT) * g))) for g in (*_NEAR, single(1e-30))]
"""The contribution of a pair at distance d, for d from 0 to _FAR + 1; the last applies to all beyond."""


def ranker(node: Node) -> Callable[[TsVector], float]:
    """Return a function that ranks texts that match the query, 0 or more.

    >>> ranker(websearch("cache"))({"cach": (3,)})
    0.0607927106320858
    """
    items = sorted({lexeme for phrase, _ in phrases(node) for lexeme in phrase.lexemes})
    by_pairs = len(items) > 1 and (isinstance(node, Phrase) or (isinstance(node, Joined) and node.sign == "&"))

    def score(vector: TsVector) -> float:
        present = [vector[item] for item in items if item in vector]
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


@cache
def analysis(search: TextSearch) -> WordAnalyzer:
    """How a store counts the lexemes of its entries: each as often as it has positions, and those."""
    text = search.text
    name = f"tsearch {text.__module__}.{text.__qualname__}"
    return WordAnalyzer(name, lambda entry: flat(tsvector(text(entry))), search.fields)


def flat(vector: TsVector) -> Read:
    """The lexemes of a text, each as often as it has positions, and those."""
    words = [lexeme for lexeme, places in vector.items() for _ in places]
    return words, [*chain.from_iterable(vector.values())]


def best(
    counted: ScopedPostings, node: Node, filters: Filters = EVERYTHING, depth: int | None = None
) -> list[tuple[str, float]]:
    """Return (id, ts_rank) of the best matching texts that pass the filters, ties by ascending id."""
    numbers = counted.numbers
    found = matching(counted, node, numbers[counted.within(filters)[numbers]] if filters else numbers)
    scores = np.zeros(len(counted.lengths))
    scores[found] = list(map(ranker(node), _vectors(counted, node, found)))
    return counted.best(scores, found, depth)


def matching(counted: ScopedPostings, node: Node, numbers: Indices) -> Indices:
    """Those of some texts, ascending, that match the query."""
    match node:
        case Phrase(words, offsets):
            found = numbers
            for word in words:
                found = np.intersect1d(found, counted.posting(word).at, assume_unique=True)
            if len(words) == 1:
                return found
            vectors, pairs = _vectors(counted, node, found), list(zip(words, offsets, strict=True))
            starts = (({at - offset for at in vector[word]} for word, offset in pairs) for vector in vectors)
            return found.compress([bool(set.intersection(*each)) for each in starts])
        case Not(part, times):
            found = matching(counted, part, numbers)
            return np.setdiff1d(numbers, found, assume_unique=True) if times % 2 else found
        case Joined("|", parts):
            return np.unique(np.concatenate([matching(counted, part, numbers) for part in parts]))
        case Joined(_, parts):
            return reduce(lambda left, part: matching(counted, part, left), parts, numbers)


def _vectors(counted: ScopedPostings, node: Node, numbers: Indices) -> list[TsVector]:
    """What the texts hold of the lexemes of a query."""
    vectors: list[TsVector] = [{} for _ in numbers]
    for word in {word for phrase, _ in phrases(node) for word in phrase.lexemes}:
        posting = counted.posting(word)
        _, held, places = np.intersect1d(numbers, posting.at, assume_unique=True, return_indices=True)
        for row, end, count in zip(held, np.cumsum(posting.counts)[places], posting.counts[places], strict=True):
            vectors[row][word] = tuple(posting.positions[end - count : end].tolist())
    return vectors


@dataclass(frozen=True)
class TsRetriever:
    """Searches by web-search syntax and ranks by ts_rank; the scope acts before the cut.

    ts_rank uses no statistics of the corpus, so one index serves every scope.
    """

    store: ReadableStore
    search: TextSearch

    def retrieve(self, query: Query, depth: int | None) -> list[ScoredId]:
        """See Retriever.retrieve; a query of stop words and signs alone finds nothing."""
        asked = websearch(query.keywords)
        counted = self.store.counted(analysis(self.search), EVERYTHING)
        found = [] if asked is None else best(counted, asked, query.filters, depth)
        return [ScoredId(id_, score, place) for place, (id_, score) in enumerate(found, 1)]


def has_negation(node: Node) -> bool:
    """Whether MoltNet treats the query as negated: as PostgreSQL prints it there is a "!", be it a file path's."""
    return any(negated or any("!" in word for word in phrase.lexemes) for phrase, negated in phrases(node))


def lexical(store: ReadableStore, text: Callable[[Entry], str]) -> Scorer:
    """1 for a candidate that matches the whole query, or when the query excludes nothing; else 0.

    A negation is a lexical constraint: it also drops what only the vectors found, unless the positive
    part matches too. Source: MoltNet's document, negation tradeoff.
    """

    def score(query: Query, ids: Sequence[str]) -> Floats:
        asked = websearch(query.keywords)
        if asked is None or not has_negation(asked):
            return np.ones(len(ids))
        counted = ScopedPostings.of((entry.id, flat(tsvector(text(entry)))) for entry in store.get(ids))
        held = set(counted.ids(matching(counted, asked, counted.numbers)))
        return np.array([float(id_ in held) for id_ in ids], dtype=np.float64)

    return score


def _lexical(parts: BuildContext) -> Scorer:
    index = parts.reading.index
    if not isinstance(index, TextSearch):
        raise ConfigError(f"{parts.name} has no exclusions, so it has no signal lexical; drop the stage")
    return lexical(parts.store, index.text)


LEXICAL = ScorerKind(name="lexical", build=_lexical)
