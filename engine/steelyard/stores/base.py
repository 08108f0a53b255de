"""What a store promises to the retrievers; the contract tests stand in `steelyard.testing`.

Postings are flat arrays: which words occur in which texts, how often and where. Texts have numbers, as they were
counted. What a scope counts is a mask over them, so one index serves every scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.base.errors import ConfigError, shown
from steelyard.memory.entry import EVERY_FIELD, Entry
from steelyard.memory.query import EVERYTHING, Filters

COSINE = "cosine"
"""The metric of vectors where nothing else is said."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_TOKENIZER = re.compile(r"[a-z][a-z0-9_ ]{0,80}", re.ASCII)


def is_address(source: object) -> bool:
    """Whether a source is the address of a database, and no file.

    >>> is_address("postgresql://me@localhost/moltnet"), is_address("moltnet.sql")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))


@dataclass(frozen=True, slots=True)
class KeywordIndex:
    """A full-text index: its name, the entry fields it covers (in this order), and its tokenizer.

    ConfigError unless both are of small letters, digits and underscores, because they become part of SQL.
    """

    name: str
    fields: tuple[str, ...]
    tokenizer: str = "porter unicode61"

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(str(self.name)) and _TOKENIZER.fullmatch(str(self.tokenizer))):
            raise ConfigError(
                f"keyword index {shown(self.name)} with tokenizer {shown(self.tokenizer)} cannot be made; use "
                "small letters, digits and underscores, beginning with a letter"
            )


@dataclass(frozen=True)
class TextSearch:
    """Full text searched as PostgreSQL does, in memory: what is read of these fields of an entry, in English."""

    text: Callable[[Entry], str]
    fields: tuple[str, ...] = EVERY_FIELD


@dataclass(frozen=True, slots=True)
class Space:
    """Where comparable vectors live: one model, one layer (text, l0, l1), one text recipe."""

    model: str
    layer: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Found:
    """An entry a retriever returned: `score` (larger is better), and its place from 1 in the list that is cut."""

    id: str
    score: float
    position: int


@dataclass(frozen=True)
class ScoredIds(Sequence[Found]):
    """What a retriever found, best first, as arrays: for lists as long as the store.

    The ids ascend, and lists of one scope share the very tuple; `scores`, float64[n], are theirs. `order`,
    int64[n], has the places of the ids from the best score to the worst.
    """

    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    order: NDArray[np.int64]

    @property
    def positions(self) -> NDArray[np.int32]:
        """int32[n]: the place from 1 of each of the ids."""
        places = np.empty(len(self.order), dtype=np.int32)
        places[self.order] = np.arange(1, len(self.order) + 1)
        return places

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int | slice) -> Any:  # noqa: ANN401 -- one, or a list of them
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        row = int(self.order[place])
        return Found(self.ids[row], float(self.scores[row]), place + 1)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two entries, as its source states it; `strength` is None where it states none."""

    source: str
    target: str
    type: str
    strength: float | None


class Readable(Protocol):
    """What a search reads: entries, keyword indexes and vector spaces behind one interface."""

    def seen_by(self, visible: Filters) -> Readable:
        """The store as a caller sees it who may see these entries alone: as if there were no others.

        What stands outside moves no score, count, order or message. Latency is not promised.
        """

    def get(self, ids: Sequence[str], fields: Sequence[str] = ...) -> list[Entry]:
        """The entries of these ids, in this order; unknown ids are left out.

        With `fields` only those are read and the others are empty; by default all are.
        """

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """All entries in scope, by ascending id."""

    def places(self) -> Iterator[tuple[str, str, bool]]:
        """Id, URI, and whether it has an abstract or an overview, of every entry that has one of them, by id."""

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        """Which of these ids belong to entries in scope."""

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """The newest entries in scope by creation date, ties and undated ones by ascending id; all below 0."""

    def count(self, filters: Filters = EVERYTHING) -> int:
        """How many entries are in scope."""

    def covers(self, filters: Filters) -> bool:
        """Whether everything is in scope: every copy, where there are several of one entry."""

    def revision(self) -> int:
        """A number that changes with every change of the entries or of their vectors."""

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """The best `depth` matches in scope by BM25 with a weight a field; the scope is applied first.

        Makes the index if it is absent. An expression that cannot be read finds nothing.
        """

    def counted(self, analysis: Analysis, filters: Filters) -> Counted:
        """The words of the entries in scope, as an analysis reads them."""

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """The relations from or to these entries, by source, target and type; a target need not exist."""

    def spaces(self) -> list[tuple[Space, int]]:
        """The vector spaces there are, with their dimensions."""

    def without_vectors(self, spaces: Sequence[Space]) -> list[str]:
        """The tiers that hold vectors in none of these spaces, by name; none of a store that has no tiers."""
        return []

    def approximate(self, spaces: Sequence[Space]) -> str:
        """How `nearest` searches these spaces where it may miss some of the nearest; empty where it cannot."""
        return ""

    def nearest(
        self,
        space: Space,
        vector: NDArray[np.float32],
        filters: Filters,
        depth: int,
        filter_first: bool,
        metric: str = COSINE,
    ) -> list[Found]:
        """The `depth` nearest entries; none for a vector of zeros.

        The score is the cosine similarity, in -1..1, or with the metric l2 what the Euclidean distance
        leaves of 1, which is 1 at most and has no lower end. With `filter_first` the scope is applied
        before the cut to `depth`; without, after it, so that the list may be short and its positions
        have gaps.
        """

    def expect(self, space: Space, vectors: Sequence[NDArray[np.float32]]) -> None:
        """Say that these vectors are asked for next: their products can be computed at once. Changes no result."""

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        """Ids of the entries in scope with a text or details and without a vector in these spaces, ascending."""

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], NDArray[np.float32]]:
        """Ids (ascending) and float32[n, dim] of all vectors in scope."""

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of these entries; entries without one are left out."""


Read = tuple[Sequence[str], Sequence[int]]
"""The words of a text, and the position of each; no positions where none are kept."""
SAMPLE = "The tokens of v1.2.3 were ROTATING: don't re-authenticate cafés; über_alles /etc/x.py"
"""A text that stop words, stemming, signs and accents make something of."""


class Posting(NamedTuple):
    """The texts a word occurs in, int64[n] ascending, how often, and where: the positions text by text."""

    at: Indices
    counts: Indices
    positions: Indices

    def of(self, keep: Bools) -> Posting:
        """The part in these of its texts, bool[n]."""
        positions = self.positions[np.repeat(keep, self.counts)] if len(self.positions) else self.positions
        return Posting(self.at[keep], self.counts[keep], positions)


_NO_NUMBERS = np.zeros(0, dtype=np.int64)
NOTHING = Posting(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


@dataclass(frozen=True)
class Analysis:
    """How the words of an entry are read."""

    name: str
    """Tells it from others."""
    read: Callable[[Any], Read]
    fields: tuple[str, ...] = EVERY_FIELD
    """What `read` reads of an entry."""
    index: str = ""
    """The keyword index that has counted the words; `read` is then given the fields as they lie in the file."""

    @cached_property
    def key(self) -> str:
        """The name, with a hash of what a sample is read as, which changes when the code does."""
        if self.index:
            return self.name
        text = SAMPLE
        sample = Entry("sample", text, text, why=text, impact=text, context=text, uri=text, tags=(text,))
        return f"{self.name} {sha256(repr(self.read(sample)).encode()).hexdigest()[:16]}"


class Segment:
    """Some texts that were counted."""

    lengths: Indices
    """int64[texts]: how many words each has."""
    made: dict[Any, Any]
    """What users of the words compute from all of them, kept as long as they are."""

    def posting(self, word: str) -> Posting:
        """Where a word occurs."""
        raise NotImplementedError

    def frequencies(self, words: Sequence[str], inside: Bools | None) -> Indices:
        """int64[words]: how many of the texts each occurs in; of those inside, bool[texts], where some are not."""
        return sums([self.posting(word).at for word in words], inside)

    def beginning(self, prefix: str) -> list[Posting]:
        """Where words that begin so occur, once each; one posting may be of several, one word after another."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Postings(Segment):
    """A segment in memory: the postings of word number w are `begins[w]` to `begins[w + 1]`."""

    lengths: Indices
    words: Mapping[str, int]
    begins: Indices
    whole: Posting
    places: Indices
    """Where the positions of each posting begin; empty where none are kept."""
    made: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[Read]) -> Postings:
        """Count texts."""
        words: dict[str, int] = {}
        codes: list[Indices] = []
        places: list[Indices] = []
        for read, where in texts:
            codes.append(np.array([words.setdefault(word, len(words)) for word in read], dtype=np.int64))
            places.append(np.array(where, dtype=np.int64))
        lengths = np.array([len(coded) for coded in codes], dtype=np.int64)
        code, place = np.concatenate([_NO_NUMBERS, *codes]), np.concatenate([_NO_NUMBERS, *places])
        order = np.argsort(code, kind="stable")
        code, text = code[order], np.repeat(np.arange(len(codes)), lengths)[order]
        first = np.flatnonzero(np.diff(code, prepend=-1) | np.diff(text, prepend=-1))
        counts = np.diff(first, append=len(code))
        begins = np.searchsorted(code[first], np.arange(len(words) + 1))
        whole = Posting(_narrow(text[first]), _narrow(counts), _narrow(place[order] if len(place) else place))
        return cls(lengths, words, begins, whole, first if len(place) else _NO_NUMBERS)

    def posting(self, word: str) -> Posting:
        number = self.words.get(word)
        if number is None:
            return NOTHING
        span = slice(*self.begins[number : number + 2])
        counts, positions = self.whole.counts[span], _NO_NUMBERS
        if len(self.places):
            begin = self.places[span.start]
            positions = self.whole.positions[begin : begin + int(counts.sum())]
        return Posting(*(part.astype(np.int64) for part in (self.whole.at[span], counts, positions)))

    def frequencies(self, words: Sequence[str], inside: Bools | None) -> Indices:
        numbers = [self.words.get(word, -1) for word in words]
        spans = (slice(*self.begins[number : number + 2]) if number >= 0 else slice(0) for number in numbers)
        return sums([self.whole.at[part] for part in spans], inside)

    def beginning(self, prefix: str) -> list[Posting]:
        return [self.posting(word) for word in self.words if word.startswith(prefix)]


@dataclass(frozen=True, eq=False)
class Counted:
    """The words of the texts in a scope.

    The texts are numbered through all segments; those `inside`, bool[texts], are in scope, None for all. `ids`
    gives the ids of some numbers, `within` gives bool[texts], those that pass filters.
    """

    segments: Sequence[Segment]
    inside: Bools | None
    ids: Callable[[Indices], list[str]]
    within: Callable[[Filters], Bools]
    made: dict[str, Any] = field(default_factory=dict)
    """What users of the words compute from all of them, kept as long as they are."""

    @classmethod
    def of(cls, texts: Iterable[tuple[str, Read]], within: Callable[..., set[str]] | None = None) -> Counted:
        """Count (id, words) pairs, all in scope; `within` gives those of the ids that pass filters."""
        ids: list[str] = []

        def reads() -> Iterator[Read]:
            for id_, read in texts:
                ids.append(id_)
                yield read

        def admitted(filters: Filters) -> Bools:
            known = within(ids, filters) if within else set(ids)
            return np.array([id_ in known for id_ in ids], dtype=bool)

        segments = [Postings.of(reads())]
        return cls(segments, None, lambda numbers: [ids[number] for number in numbers.tolist()], admitted)

    @cached_property
    def lengths(self) -> Indices:
        """int64[texts]: how many words each text has, also those out of scope."""
        return np.concatenate([segment.lengths for segment in self.segments])

    def only(self, keep: Bools) -> Counted:
        """The part of the scope that is in these, bool[texts]."""
        inside = keep if self.inside is None else self.inside & keep
        return Counted(self.segments, inside, self.ids, self.within)

    @cached_property
    def numbers(self) -> Indices:
        """The texts in scope, ascending."""
        return np.arange(len(self.lengths)) if self.inside is None else np.flatnonzero(self.inside)

    @cached_property
    def mean_length(self) -> float:
        """The mean number of words of the texts in scope; 0 where there are none."""
        return float(self.lengths[self.numbers].sum() / len(self.numbers)) if len(self.numbers) else 0.0

    def frequencies(self, words: Sequence[str]) -> list[int]:
        """How many texts in scope each word occurs in."""
        counts, first = np.zeros(len(words), dtype=np.int64), 0
        for segment in self.segments:
            end = first + len(segment.lengths)
            inside = None if self.inside is None else self.inside[first:end]
            counts += segment.frequencies(words, None if inside is None or inside.all() else inside)
            first = end
        return [*map(int, counts)]

    def posting(self, word: str) -> Posting:
        """Where a word occurs in the texts in scope."""
        parts, first = [], 0
        for segment in self.segments:
            part = segment.posting(word)
            if len(part.at):
                parts.append(part._replace(at=part.at + first) if first else part)
            first += len(segment.lengths)
        # one part alone is not copied
        whole = Posting(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else [*parts, NOTHING][0]
        return whole if self.inside is None else whole.of(self.inside[whole.at])

    def best(self, scores: Floats, numbers: Indices, depth: int | None) -> list[tuple[str, float]]:
        """The ids and scores (of float64[texts]) of the best of some texts, ties by ascending id; None for all."""
        if depth is not None and 0 < depth < len(numbers):
            least = np.partition(scores[numbers], len(numbers) - depth)[len(numbers) - depth]
            numbers = numbers[scores[numbers] >= least]
        pairs = zip(self.ids(numbers), scores[numbers].tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:depth]


def sums(parts: Sequence[Indices], inside: Bools | None) -> Indices:
    """How many texts there are in each part, int64[parts]; of those inside, bool[texts], where some are not."""
    ends = np.cumsum([0, *map(len, parts)])
    if inside is not None and len(parts):
        ends = np.concatenate([[0], np.cumsum(inside[np.concatenate(parts)])])[ends]
    return np.diff(ends)


def _narrow(numbers: Indices) -> NDArray[Any]:  # in an eighth of the memory, where they are small
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
