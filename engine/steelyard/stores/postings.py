"""The inverted index: which words occur in which texts, how often and where; how the words of an entry are read.

Postings are flat arrays. Texts have numbers, as they were counted. What a scope counts is a mask over them, so one
index serves every scope.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard.memory.entry import EVERY_FIELD, Entry
from steelyard.memory.query import Filters
from steelyard.memory.text import CONTENT, content
from steelyard.stores.analysis import Analysis

Read = tuple[Sequence[str], Sequence[int]]
"""The words of a text, and the position of each; no positions where none are kept."""
SAMPLE = "The tokens of v1.2.3 were ROTATING: don't re-authenticate cafés; über_alles /etc/x.py"
"""A text that stop words, stemming, signs and accents make something of."""


class Posting(NamedTuple):
    """The texts a word occurs in, int64[n] ascending, how often, and where: the positions text by text."""

    at: Indices
    counts: Indices
    positions: Indices

    def of(self, keep: Bools) -> "Posting":
        """The part in these of its texts, bool[n]."""
        positions = self.positions[np.repeat(keep, self.counts)] if len(self.positions) else self.positions
        return Posting(self.at[keep], self.counts[keep], positions)


_NO_NUMBERS = np.zeros(0, dtype=np.int64)
NOTHING = Posting(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


@dataclass(frozen=True)
class WordAnalyzer:
    """How the words of an entry are read."""

    name: str  # tells it from others
    read: Callable[[Any], Read]
    fields: tuple[str, ...] = EVERY_FIELD  # what `read` reads of an entry
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


ANALYSIS = Analysis()


@dataclass(frozen=True)
class TokenSettings:
    """How the text of an entry, and a query, are split into words, for signals that count words."""

    text: Callable[[Entry], str] = content
    split: Callable[[str], list[str]] | Analysis = ANALYSIS
    """A system's own rules, or the analysis of the retrievers that are ours."""
    fields: tuple[str, ...] = EVERY_FIELD  # the fields of an entry that `text` reads, so that others need not be
    least: int = 0  # how many words an entry needs to be counted at all
    corpus_wide: bool = False
    """Whether statistics are those of all that the system searches, not of the query's own scope."""

    def of_entry(self, text: str) -> list[str]:
        """The words of an entry's text."""
        return self.split.entry(text) if isinstance(self.split, Analysis) else self.split(text)

    def of_query(self, text: str) -> list[str]:
        """The words of a query's text."""
        return self.split.query(text) if isinstance(self.split, Analysis) else self.split(text)

    @property
    def named(self) -> tuple[str, str]:
        """What reads the text and what splits it, as recordings name them."""
        return self.text.__name__, "terms" if isinstance(self.split, Analysis) else self.split.__name__

    @cached_property
    def analysis(self) -> WordAnalyzer:
        """How a store counts these words."""
        ways = (self.text, self.split)
        name = " ".join(repr(w) if isinstance(w, Analysis) else f"{w.__module__}.{w.__qualname__}" for w in ways)
        fields = CONTENT if self.text is content else self.fields
        return WordAnalyzer(name, self._read, fields)

    def _read(self, entry: Entry) -> Read:
        return self.of_entry(self.text(entry)), ()


class Segment:
    """Some texts that were counted."""

    lengths: Indices  # int64[texts]: how many words each has
    made: dict[Any, Any]  # what users of the words compute from all of them, kept as long as they are

    def posting(self, word: str) -> Posting:
        """Where a word occurs."""
        raise NotImplementedError

    def counter(self, inside: Bools) -> Callable[[str], int]:
        """Tells in how many of some texts, bool[texts], a word occurs."""
        return lambda word: int(np.count_nonzero(inside[self.posting(word).at]))

    def beginning(self, prefix: str) -> list[Posting]:
        """Where the words that begin so occur; a posting may have several words, one after another."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Postings(Segment):
    """A segment in memory: the postings of word number w are `begins[w]` to `begins[w + 1]`."""

    lengths: Indices
    words: defaultdict[str, int]
    begins: Indices
    complete: Posting
    places: Indices  # where the positions of each posting begin, and where the last end; empty where none are kept
    made: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[Read], after: Sequence["Postings"] = ()) -> "Postings":
        """Count texts; texts and words are numbered on after those of other segments."""
        first, words = sum(len(one.lengths) for one in after), after[0].words if after else defaultdict[str, int]()
        words.default_factory = words.__len__  # a new word gets the next number
        codes, places, sizes = array("i"), array("i"), array("i")
        for read, where in texts:
            codes.extend(map(words.__getitem__, read))
            places.extend(where)
            sizes.append(len(read))
        words.default_factory = None
        lengths = np.array(sizes, dtype=np.int64)
        both = np.sort(np.array(codes, dtype=np.int64) << 32 | np.arange(len(codes)))  # faster than a stable sort
        code, order = (both >> 32).astype(np.int32), (both & (2**32 - 1)).astype(np.uint32)
        text = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)[order]
        ends = np.flatnonzero(np.append(np.diff(code, prepend=-1) | np.diff(text, prepend=-1), 1))
        begins = np.searchsorted(code[ends[:-1]], np.arange(len(words) + 1))
        positions = np.array(places)[order] if places else _NO_NUMBERS
        whole = Posting(_narrow(text[ends[:-1]]), _narrow(np.diff(ends)), _narrow(positions))
        return cls(lengths, words, begins, whole, ends if places else _NO_NUMBERS)

    def posting(self, word: str) -> Posting:
        number = self.words.get(word, len(self.begins))
        if number + 1 >= len(self.begins):
            return NOTHING
        begin, end = self.begins[number : number + 2].tolist()
        at, counts, positions = self.complete
        if len(self.places):
            positions = positions[self.places[begin] : self.places[end]]
        return Posting(*(part.astype(np.int64) for part in (at[begin:end], counts[begin:end], positions)))

    def counter(self, inside: Bools) -> Callable[[str], int]:
        holding = np.diff(np.append(0, np.cumsum(inside[self.complete.at]))[self.begins]).tolist()
        return lambda word: holding[at] if (at := self.words.get(word, len(holding))) < len(holding) else 0

    def beginning(self, prefix: str) -> list[Posting]:
        return [self.posting(word) for word in self.words if word.startswith(prefix)]


@dataclass(frozen=True, eq=False)
class ScopedPostings:
    """The words of the texts in a scope.

    The texts are numbered through all segments; those `inside`, bool[texts], are in scope, None for all. `ids`
    gives the ids of some numbers, `within` gives bool[texts], those that pass filters.
    """

    segments: Sequence[Segment]
    inside: Bools | None
    ids: Callable[[Indices], list[str]]
    within: Callable[[Filters], Bools]

    @classmethod
    def of(cls, texts: Iterable[tuple[str, Read]], within: Callable[..., set[str]] | None = None) -> Self:
        """Count (id, words) pairs, all in scope; `within` gives those of the ids that pass filters."""
        ids = list(counted := dict(texts))

        def admitted(filters: Filters) -> Bools:
            known = within(ids, filters) if within else set(ids)
            return np.array([id_ in known for id_ in ids], dtype=bool)

        segments = [Postings.of(counted.values())]
        return cls(segments, None, lambda numbers: [ids[number] for number in numbers.tolist()], admitted)

    @cached_property
    def lengths(self) -> Indices:
        """int64[texts]: how many words each text has, also those out of scope."""
        return np.concatenate([segment.lengths for segment in self.segments])

    def only(self, keep: Bools) -> "ScopedPostings":
        """The part of the scope that is in these, bool[texts]."""
        inside = keep if self.inside is None else self.inside & keep
        return ScopedPostings(self.segments, inside, self.ids, self.within)

    @cached_property
    def numbers(self) -> Indices:
        """The texts in scope, ascending."""
        return np.arange(len(self.lengths)) if self.inside is None else np.flatnonzero(self.inside)

    @cached_property
    def mean_length(self) -> float:
        """The mean number of words of the texts in scope; 0 where there are none."""
        return float(self.lengths[self.numbers].sum() / len(self.numbers)) if len(self.numbers) else 0.0

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

    @cached_property
    def holding(self) -> Callable[[str], int]:
        """Tells how many texts in scope a word occurs in: for many words, as it counts all that are in memory."""
        inside = np.ones(len(self.lengths), dtype=bool) if self.inside is None else self.inside
        parts = np.split(inside, np.cumsum([len(segment.lengths) for segment in self.segments[:-1]]))
        counters = [segment.counter(part) for segment, part in zip(self.segments, parts, strict=True)]
        return lambda word: sum(counter(word) for counter in counters)

    def best(self, scores: Floats, numbers: Indices, depth: int | None) -> list[tuple[str, float]]:
        """The ids and scores (of float64[texts]) of the best of some texts, ties by ascending id; None for all."""
        if depth is not None and 0 < depth < len(numbers):
            least = np.partition(scores[numbers], len(numbers) - depth)[len(numbers) - depth]
            numbers = numbers[scores[numbers] >= least]
        pairs = zip(self.ids(numbers), scores[numbers].tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:depth]


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:  # in an eighth of the memory, where they are small
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
