"""Facts of entries and of queries, each stored once: numbers, labels and sets of tags, as arrays.

Signals such as recency are computed from them when they are used, so that half-lives and severity maps can be
tuned on a recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from types import MappingProxyType

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query

NUMBER_FACTS = (
    *("importance", "created_at", "updated_at", "last_accessed_at", "valid_from", "valid_until"),
    *("access_count", "correction_count", "last_review", "stability", "half_life_days", "length"),
)
LABEL_FACTS = (
    *("severity", "domain", "document_type", "spec_level"),
    *("importance_tier", "memory_type", "context_type"),
)
ENDS = ("low", "high")
"""The facts of a query that say between which ends a retriever's scores can lie, before the name of its signal."""
_numbers, _labels = attrgetter(*NUMBER_FACTS[:-1]), attrgetter(*LABEL_FACTS)
FACT_FIELDS = (*NUMBER_FACTS[:-1], *LABEL_FACTS, "tags", "text")
"""What has to be read of an entry for its facts; `length` is the number of characters of its text."""


@dataclass(frozen=True)
class TagSets:
    """Sets of tags as CSR over a shared vocabulary; codes ascend within each set."""

    offsets: Indices
    codes: Ints

    @classmethod
    def of(cls, sets: Iterable[Sequence[str]], codes: dict[str, int]) -> TagSets:
        """Encode sets of tags, adding unseen tags to `codes`."""
        rows = [sorted({codes.setdefault(tag, len(codes)) for tag in tags}) for tags in sets]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(offsets, np.array([code for row in rows for code in row], dtype=np.int32))


@dataclass(frozen=True)
class Labels:
    """One word per position, stored as codes int32[n] into a vocabulary."""

    codes: Ints
    words: tuple[str, ...]

    @classmethod
    def of(cls, labels: Iterable[str]) -> Labels:
        """Encode labels, keeping their order."""
        codes: dict[str, int] = {}
        encoded = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int32)
        return cls(encoded, tuple(codes))

    def equal(self, *words: str) -> Bools:
        """Where the label is one of these words; bool[n]."""
        return self.mapped(dict.fromkeys(words, 1.0), 0.0) > 0

    def mapped(self, numbers: Mapping[str, float], other: float) -> Floats:
        """The number of each label, float64[n]; `other` for a word without one."""
        return np.array([numbers.get(word, other) for word in self.words] or [other], dtype=np.float64)[self.codes]


@dataclass(frozen=True)
class Facts:
    """What signals are computed from: numbers (NaN where unknown), labels and tag sets, each by position."""

    numbers: Mapping[str, Floats]
    labels: Mapping[str, Labels]
    tags: TagSets

    def slice(self, begin: int, end: int) -> Facts:
        """The facts of the positions begin..end-1, as views."""
        ends = self.tags.offsets[begin : end + 1]
        return Facts(
            {name: values[begin:end] for name, values in self.numbers.items()},
            {name: Labels(labels.codes[begin:end], labels.words) for name, labels in self.labels.items()},
            TagSets(ends - ends[0], self.tags.codes[ends[0] : ends[-1]]),
        )


NO_FACTS = Facts({}, {}, TagSets(np.zeros(1, np.int64), np.zeros(0, np.int32)))
"""The facts of a table built for a strategy that needs none."""


def entry_facts(entries: Sequence[Entry], tag_codes: dict[str, int]) -> Facts:
    """Collect the facts of entries, in the order given; `tag_codes` is shared with `query_facts`."""
    rows = [(*_numbers(entry), len(entry.text.strip())) for entry in entries]
    numbers = np.array(rows, dtype=np.float64).reshape(-1, len(NUMBER_FACTS)).T.copy()  # None becomes NaN
    words = zip(*map(_labels, entries), strict=True) if entries else repeat((), len(LABEL_FACTS))
    labels = dict(zip(LABEL_FACTS, map(Labels.of, words), strict=True))
    tags = TagSets.of((e.tags for e in entries), tag_codes)
    return Facts(dict(zip(NUMBER_FACTS, numbers, strict=True)), labels, tags)


def query_facts(
    queries: Sequence[Query],
    clocks: Sequence[float],
    tag_codes: dict[str, int],
    ends: Mapping[str, Floats] = MappingProxyType({}),
) -> Facts:
    """Collect the facts of queries, in the order given: clock (seconds UTC), intent, domain, tags, and the ends of
    the scores of retrievers, float64[Q, 2] by signal.
    """
    numbers = {"clock": np.array(clocks, dtype=np.float64)}
    for name, values in ends.items():
        numbers |= {f"{end} {name}": values[:, i] for i, end in enumerate(ENDS)}
    labels = {name: Labels.of(getattr(q, name) for q in queries) for name in ("intent", "domain")}
    return Facts(numbers, labels, TagSets.of((q.tags for q in queries), tag_codes))
