"""FTS5's bm25 in memory, of phrases joined by OR, with the bits of FTS5's own; other expressions are left to FTS5.

Source: fts5_aux.c of SQLite. A phrase that occurs in n of N rows weighs ``ln((N - n + 0.5) / (n + 0.5))``, 1e-6 at
least, and adds ``weight * (f (k1 + 1)) / (f + k1 (1 - b + b D / mean D))`` to a row of D tokens, where each of its
occurrences adds the weight of its field to f, in their order.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import apsw
import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.memory.filters import Filters
from steelyard.stores.base import KeywordIndex
from steelyard.stores.postings import Analysis, Counted, Posting, Read, Segment
from steelyard.stores.sqlite.terms import FIELD

K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
LONGEST = 32_768
"""Bytes of a token that FTS5 reads; longer ones are cut, so texts that hold such are left to it."""
ROW = 36
"""The bits of a position within a row, where both are one number."""
_PART = re.compile(r'[ \t\r\n]*(?:"((?:[^"]|"")*)"|([^\x00-/:-@\[-^`{-\x7f]+))[ \t\r\n]*(\*?)[ \t\r\n]*')
_NOWHERE = np.zeros(0, dtype=np.int64)
_KEYWORDS = frozenset(("AND", "OR", "NOT", "NEAR"))


class TokenError(ValueError):
    """A text that FTS5 cuts, or that cannot be read without it."""


class TokenPhrase(NamedTuple):
    """Consecutive tokens; of the last one a prefix is enough where `prefix` is set."""

    tokens: tuple[str, ...]
    prefix: bool


def fts5_tokens(tokenizer: str, text: str) -> list[str]:
    """The tokens that FTS5 finds in a text.

    Raises TokenError for one that it would cut, or where apsw cannot ask a tokenizer.
    """
    known: dict[str, Any] = _own.__dict__.setdefault("tokenizers", {})
    if tokenizer not in known:
        name, *arguments = tokenizer.split()
        connection = apsw.Connection(":memory:")
        if not hasattr(connection, "fts5_tokenizer"):
            raise TokenError("this apsw has no tokenizers")
        known[tokenizer] = connection.fts5_tokenizer(name, arguments)
    raw = text.encode()
    tokens: list[str] = known[tokenizer](
        raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    if len(raw) > LONGEST and any(len(token.encode()) >= LONGEST for token in tokens):
        raise TokenError("a token is too long")
    return tokens


_own = threading.local()


def columns(index: KeywordIndex) -> Analysis:
    """How a store counts the tokens of a keyword index; positions hold the number of the field, too."""

    def read(values: Sequence[Any]) -> Read:
        words: list[str] = []
        places: list[int] = []
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise TokenError("a field holds no text")
            tokens = fts5_tokens(index.tokenizer, value)
            words += tokens
            places += range(number << FIELD, (number << FIELD) + len(tokens))
        return words, places

    name = f"fts5 {index.name} {index.tokenizer}"
    return Analysis(name, read, index.fields, index=index.name)


def phrases(match: str, tokenizer: str) -> list[TokenPhrase] | None:
    """The phrases of an expression that joins phrases by OR; None for any other."""
    if "\0" in match:
        return None
    tokenized, at = [], 0
    while (part := _PART.match(match, at)) is not None and part[2] not in _KEYWORDS:
        text = part[2] if part[1] is None else part[1].replace('""', '"')
        tokenized.append(TokenPhrase(tuple(fts5_tokens(tokenizer, text)), bool(part[3])))
        at = part.end()
        if at == len(match):
            return tokenized
        if not (match.startswith("OR", at) and match[at - 1 : at] in ' "*' and match[at + 2 : at + 3] in ' "'):
            return None
        at += 2
    return None


Weighed = tuple[TokenPhrase, tuple[float, ...]]
"""A phrase, with the weights of the fields."""


@dataclass(eq=False)
class KeptPhrases:
    """What was computed of phrases, a pair of arrays with a number for each row; `most` rows in all."""

    most: int
    _pairs: dict[Weighed, tuple[Indices, Floats]] = field(default_factory=dict)
    _rows: int = 0

    def of(self, asked: Weighed, compute: Callable[[Weighed], tuple[Indices, Floats]]) -> tuple[Indices, Floats]:
        """What is kept, else computed now."""
        known = self._pairs.get(asked)
        if known is None:
            known = compute(asked)
            self._rows += len(known[0]) + 1
            if self._rows > self.most:
                self._pairs, self._rows = {}, len(known[0]) + 1
            self._pairs[asked] = known
        return known


@dataclass(eq=False)
class Phrases:
    """A keyword index in memory: all rows of it, whatever the scope, because FTS5 counts all.

    How often a phrase occurs in a segment is kept as long as the segment; what that adds depends on all rows.
    """

    counted: Counted
    most: int

    def best(
        self, asked: Sequence[TokenPhrase], weights: Sequence[float], filters: Filters, depth: int | None
    ) -> list[tuple[str, float]]:
        """The ids and scores of the best rows in scope, ties by ascending id; see `Counted.best`."""
        scores, held = np.zeros(len(self.counted.lengths)), np.zeros(len(self.counted.lengths), dtype=bool)
        for phrase in asked:
            rows, adds = self._adds((phrase, tuple(weights)))
            scores[rows] += adds
            held[rows] = True
        if filters:
            held &= self.counted.within(filters)
        return self.counted.best(scores, np.flatnonzero(held), depth)

    def _adds(self, asked: Weighed) -> tuple[Indices, Floats]:
        """The rows that hold a phrase, and what it adds to the score of each of them."""
        parts, first = [], 0
        for segment in self.counted.segments:
            kept: KeptPhrases = segment.made.setdefault("phrases", KeptPhrases(self.most))
            local, often = kept.of(asked, partial(_often, segment))
            parts.append((local + first, often))
            first += len(segment.lengths)
        rows, often = (np.concatenate(part) for part in zip(*parts, strict=True))
        if self.counted.inside is not None:
            inside = self.counted.inside[rows]
            rows, often = rows[inside], often[inside]
        size = len(self.counted.numbers)
        idf = math.log((size - len(rows) + 0.5) / (len(rows) + 0.5))
        idf = idf if idf > 0 else LEAST_IDF
        return rows, idf * ((often * (K1 + 1.0)) / (often + self._norm[rows]))

    @cached_property
    def _norm(self) -> Floats:
        """float64[rows]: how much more often a phrase has to occur in a longer row."""
        lengths = self.counted.lengths.astype(np.float64)
        mean = float(self.counted.lengths[self.counted.numbers].sum()) / max(float(len(self.counted.numbers)), 1.0)
        norm: Floats = K1 * (1 - B + B * lengths / mean) if mean else lengths
        return norm


def _often(segment: Segment, asked: Weighed) -> tuple[Indices, Floats]:
    """The rows of a segment that hold a phrase, and how often, weighed by field."""
    phrase, weights = asked
    where = _where(segment, phrase)
    rows, row_of = np.unique(where >> ROW, return_inverse=True)
    fields = (where & ((1 << ROW) - 1)) >> FIELD
    # Added in the order in which FTS5 adds, because rounding makes sums of weights such as 0.1 depend on it.
    often = np.bincount(row_of, weights=np.array(weights)[fields], minlength=len(rows))
    return rows, often.astype(np.float64)


def _where(segment: Segment, phrase: TokenPhrase) -> Indices:
    """Where a phrase begins: rows and positions in one number, ascending."""
    begins: Indices | None = None
    for offset, token in enumerate(phrase.tokens):
        last = phrase.prefix and offset == len(phrase.tokens) - 1
        postings = segment.beginning(token) if last else [segment.posting(token)]
        places = np.concatenate([_NOWHERE, *map(_places, postings)])
        # The words of a prefix were read one after another: no place occurs twice, but they are not sorted.
        places = (np.sort(places) if last else places) - offset
        begins = places if begins is None else np.intersect1d(begins, places, assume_unique=True)
    return _NOWHERE if begins is None else begins


def _places(posting: Posting) -> Indices:
    return (np.repeat(posting.at, posting.counts) << ROW) + posting.positions
