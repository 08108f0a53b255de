"""The keyword indexes of a vault: FTS5 tables that triggers keep equal to the entries.

Whoever searches often is answered from postings in memory, with the bits of FTS5's bm25, where the expression
joins phrases by OR; other expressions are left to FTS5. Source: fts5_aux.c of SQLite. A phrase that occurs in n of
N rows weighs ``ln((N - n + 0.5) / (n + 0.5))``, 1e-6 at least, and adds ``weight * (f (k1 + 1)) / (f + k1 (1 - b +
b D / mean D))`` to a row of D tokens, where each of its occurrences adds the weight of its field to f, in order.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import apsw
import numpy as np

from steelyard.base.arrays import Floats, Indices, budget
from steelyard.base.errors import VaultError, visible
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import Found, KeywordIndex
from steelyard.stores.postings import Analysis, Counted, Posting, Read, Segment
from steelyard.stores.sqlite.schema import index_statements, where
from steelyard.stores.sqlite.words import FIELD, WordTables

ENTRY = 64
"""About as many bytes as an entry takes in memory beside its words."""
PHRASE_BYTES = 32
"""Bytes for each entry that a phrase occurs in: its number twice, how often, and what that adds."""
OFTEN = 10
"""Searches of one index after which words are read into memory; a command that searches once is faster without."""
RANKING = "bm25"
"""The function that weighs fields; FTS5 has it since 3.9, and a build may leave it out."""
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
LONGEST = 32_768
"""Bytes of a token that FTS5 reads; longer ones are cut, so texts that hold such are left to it."""
ROW = 36
"""The bits of a position within a row, where both are one number."""
_PART = re.compile(r'[ \t\r\n]*(?:"((?:[^"]|"")*)"|([^\x00-/:-@\[-^`{-\x7f]+))[ \t\r\n]*(\*?)[ \t\r\n]*')
_NOWHERE = np.zeros(0, dtype=np.int64)
_own = threading.local()
_KEYWORDS = frozenset(("AND", "OR", "NOT", "NEAR"))


class KeywordTables(WordTables):
    """See `steelyard.stores.base.Store`."""

    def ensure_index(self, index: KeywordIndex) -> None:
        if not self._has(index):
            with self.transaction():
                if not self._has(index):  # another process may have made it meanwhile
                    self._create_index(index)

    def _has(self, index: KeywordIndex) -> bool:
        """Whether the index is there; VaultError when it has other settings."""
        sql = "SELECT fields, tokenizer FROM keyword_indexes WHERE name = ?"
        stored: tuple[str, str] | None = self._db.execute(sql, (index.name,)).fetchone()
        if stored is not None and stored != (json.dumps(index.fields), index.tokenizer):
            raise VaultError(
                f"keyword index {index.name!r} of {self.path} covers {visible(stored[0])} "
                f"with tokenizer {stored[1]!r}, "
                f"the system asks for {json.dumps(index.fields)} with {index.tokenizer!r}; "
                "run steelyard index VAULT --rebuild"
            )
        return stored is not None

    def _create_index(self, index: KeywordIndex) -> None:
        for statement in index_statements(index):
            self._db.execute(statement)
        self._db.execute(f"INSERT INTO fts_{index.name}(fts_{index.name}) VALUES('rebuild')")
        self._db.execute(
            "INSERT INTO keyword_indexes VALUES(?, ?, ?)", (index.name, json.dumps(index.fields), index.tokenizer)
        )

    def rebuild_indexes(self, indexes: Iterable[KeywordIndex]) -> None:
        """Drop every keyword index and build these anew, in one transaction."""
        with self.transaction():
            for (stored,) in self._db.execute("SELECT name FROM keyword_indexes").fetchall():
                name = KeywordIndex(str(stored), ()).name  # which checks it
                for event in ("insert", "update", "delete"):
                    self._db.execute(f"DROP TRIGGER fts_{name}_{event}")
                self._db.execute(f"DROP TABLE fts_{name}")
            self._db.execute("DELETE FROM keyword_indexes")
            for index in indexes:
                self._create_index(index)

    def index_bytes(self, index: KeywordIndex) -> int:
        """Bytes of a keyword index: words with their entries, lengths of entries; 0 before it is made."""
        sizes = (("data", "block"), ("docsize", "sz")) if self._has(index) else ()
        totals = (f"SELECT total(length({column})) FROM fts_{index.name}_{table}" for table, column in sizes)
        return sum(int(self._one(sql)) for sql in totals)

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """See Store.keyword. SQLite's bm25 is negative with the best lowest; the score is its negation."""
        if not match:
            return []
        if self._told:
            self.ensure_index(index)
        elif not self._has(index):
            raise VaultError(
                f"{self.path} has no keyword index {index.name!r}, and searching writes nothing; run steelyard "
                f"index {self.path} --rebuild"
            )
        ranked = self._from_memory(index, match, weights, filters, depth)
        try:
            ranked = self._best(index, match, weights, filters, depth) if ranked is None else ranked
        except VaultError:
            if readable(match, index.fields):
                raise
            return []
        return [Found(id_, value, place) for place, (id_, value) in enumerate(ranked, 1)]

    def _from_memory(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[tuple[str, float]] | None:
        """The best matches as (id, score); None for what FTS5 had better answer, or has to."""
        self._searches[index.name] += 1
        if self._searches[index.name] <= OFTEN or self._writing or not ranks_by_bm25(index.fields):
            return None
        analysis = columns(index)
        if ("words", analysis.key) not in self._memory_of and self._size() * ENTRY > budget():
            return None  # the entries are counted once, because that takes as long as a search
        try:
            if (asked := phrases(match, index.tokenizer)) is None:
                return None
            with self._steady():
                try:
                    counted = self.counted(analysis, EVERYTHING)
                except TokenError:
                    self._searches[index.name] = -sys.maxsize  # so that it is not tried again and again
                    raise
                known: Phrases = counted.made.setdefault("phrases", Phrases(counted, budget() // PHRASE_BYTES))
                return known.best(asked, weights, filters, None if depth < 0 else depth)
        except TokenError:
            return None

    def _best(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Any]:
        """The matches as (id, score), best first."""
        table = f"fts_{index.name}"
        score, bound = ranking(table, index.fields, weights)
        condition, values = where(filters)
        sql = (
            f"SELECT e.id, {score} AS score FROM {table} JOIN entries e ON e.rowid = {table}.rowid "
            f"WHERE {table} MATCH ? AND {condition} ORDER BY score DESC, e.id LIMIT ?"
        )
        return self._rows(sql, (*bound, match, *values, depth))


def readable(expression: str, fields: Sequence[str]) -> bool:
    """Whether FTS5 can read the expression as a search of a table with these fields."""
    try:
        _empty(tuple(fields)).execute("SELECT 1 FROM t WHERE t MATCH ?", (expression,)).fetchall()
    except apsw.SQLError:
        return False
    return True


def ranking(table: str, fields: tuple[str, ...], weights: Sequence[float]) -> tuple[str, tuple[float, ...]]:
    """An SQL expression, larger for a better match, and its bound values: bm25 with a weight a field.

    Where there is no such function it is FTS5's own rank, which knows no weights (Soleri's document).
    """
    if ranks_by_bm25(fields):
        return f"-{RANKING}({table}, {', '.join('?' * len(weights))})", tuple(weights)
    return f"-{table}.rank", ()


@lru_cache
def ranks_by_bm25(fields: tuple[str, ...]) -> bool:
    """Whether `ranking` is by bm25."""
    try:
        _empty(fields).execute(f"SELECT {RANKING}(t) FROM t WHERE t MATCH 'a'").fetchall()
    except apsw.SQLError:
        return False
    return True


def _empty(fields: tuple[str, ...]) -> apsw.Connection:
    """A table without rows: what FTS5 can do does not depend on the vault at hand."""
    db = apsw.Connection(":memory:")
    names = ", ".join(f'"{name}"' for name in fields)
    db.execute(f"CREATE VIRTUAL TABLE t USING fts5({names})")
    return db


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
            local, often = self._kept(segment, asked)
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

    def _kept(self, segment: Segment, asked: Weighed) -> tuple[Indices, Floats]:
        """See `_often`; what is kept has `most` rows in all."""
        kept = segment.made
        known: tuple[Indices, Floats] | None = kept.get(asked)
        if known is None:
            known = _often(segment, asked)
            if kept.get("rows", 0) + len(known[0]) >= self.most:
                kept.clear()
            kept["rows"] = kept.get("rows", 0) + len(known[0]) + 1
            kept[asked] = known
        return known

    @cached_property
    def _norm(self) -> Floats:
        """float64[rows]: how much more often a phrase has to occur in a longer row."""
        lengths, mean = self.counted.lengths.astype(np.float64), self.counted.mean_length
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
