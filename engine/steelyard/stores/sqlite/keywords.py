"""The keyword indexes of a vault: FTS5 tables that triggers keep equal to the entries.

Whoever searches often is answered from postings in memory, with the bits of FTS5's bm25, where the expression
joins phrases by OR; other expressions are left to FTS5. Source: fts5_aux.c of SQLite. A phrase that occurs in n of
N rows weighs ``ln((N - n + 0.5) / (n + 0.5))``, 1e-6 at least, and adds ``weight * (f (k1 + 1)) / (f + k1 (1 - b +
b D / mean D))`` to a row of D tokens, where each of its occurrences adds the weight of its field to f, in order.
"""

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

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import VaultError, visible
from steelyard.base.machine import budget
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import KeywordIndex, ScoredId
from steelyard.stores.postings import Read, ScopedPostings, Segment, WordAnalyzer
from steelyard.stores.sqlite.guard import TEXT
from steelyard.stores.sqlite.schema import index_statements, tokenizing, where
from steelyard.stores.sqlite.words import FIELD, WordTables

ENTRY = 64  # about as many bytes as an entry takes in memory beside its words
PHRASE_BYTES = 32
"""Bytes for each entry that a phrase occurs in: its number twice, how often, and what that adds."""
OFTEN = 10
"""Searches of one index after which words are read into memory; a command that searches once is faster without."""
RANKING = "bm25"
"""The function that weighs fields; FTS5 has it since 3.9, and a build may leave it out. Its own rank, which then
ranks, knows no weights (Soleri's document)."""
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
LONGEST_TOKEN = 32_768
"""Bytes of a token that FTS5 reads; longer ones are cut, so texts that hold such are left to it."""
ROW = 36  # the bits of a position within a row, where both are one number
_PART = re.compile(r'[ \t\r\n]*(?:"((?:[^"]|"")*)"|([^\x00-/:-@\[-^`{-\x7f]+))[ \t\r\n]*(\*?)[ \t\r\n]*')
_NOWHERE = np.zeros(0, dtype=np.int64)
_own = threading.local()
_KEYWORDS = frozenset(("AND", "OR", "NOT", "NEAR"))


class KeywordTables(WordTables):
    """See `steelyard.stores.base.ReadableStore`."""

    def ensure_index(self, index: KeywordIndex) -> None:
        """Create the index if it is absent; VaultError when it stands there with other settings."""
        if not self._has(index):
            with self.transaction():
                if not self._has(index):  # another process may have made it meanwhile
                    self._create_index(index)

    def _has(self, index: KeywordIndex) -> bool:
        """Whether the index is there; VaultError when it has other settings."""
        stored = self._db.run("SELECT fields, tokenizer FROM keyword_indexes WHERE name = ?", (index.name,))
        if stored and stored != [(json.dumps(index.fields), index.tokenizer)]:
            [(fields, tokenizer)] = stored
            raise VaultError(
                f"keyword index {index.name!r} of {self.path} covers {visible(fields)} with tokenizer "
                f"{tokenizer!r}, the system asks for {json.dumps(index.fields)} with {index.tokenizer!r}; "
                "run steelyard index VAULT --rebuild"
            )
        return bool(stored)

    def _create_index(self, index: KeywordIndex) -> None:
        for statement in index_statements(index):
            self._db.run(statement)
        self._db.run(f"INSERT INTO fts_{index.name}(fts_{index.name}) VALUES('rebuild')")
        self._db.run(
            "INSERT INTO keyword_indexes VALUES(?, ?, ?)", (index.name, json.dumps(index.fields), index.tokenizer)
        )

    def rebuild_indexes(self, indexes: Iterable[KeywordIndex]) -> None:
        """Drop every keyword index and build these anew, in one transaction."""
        with self.transaction():
            for (stored,) in self._db.run("SELECT name FROM keyword_indexes"):
                name = KeywordIndex(str(stored), ()).name  # which checks it
                for event in ("insert", "update", "delete"):
                    self._db.run(f"DROP TRIGGER fts_{name}_{event}")
                self._db.run(f"DROP TABLE fts_{name}")
            self._db.run("DELETE FROM keyword_indexes")
            for index in indexes:
                self._create_index(index)

    def index_bytes(self, index: KeywordIndex) -> int:
        """Bytes of a keyword index: words with their entries, lengths of entries; 0 before it is made."""
        sizes = (("data", "block"), ("docsize", "sz")) if self._has(index) else ()
        totals = (f"SELECT total(length({column})) FROM fts_{index.name}_{table}" for table, column in sizes)
        return sum(int(self._one(sql)) for sql in totals)

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[ScoredId]:
        """See Readable.keyword. SQLite's bm25 is negative with the best lowest; the score is its negation."""
        if not match:
            return []
        if self._told:
            self.ensure_index(index)
        elif not self._has(index):
            raise VaultError(
                f"{self.path} has no keyword index {index.name!r}; run steelyard index {self.path} --rebuild"
            )
        ranked: list[Any] | None = self._from_memory(index, match, weights, filters, depth)
        if ranked is None:
            table, (condition, values) = f"fts_{index.name}", where(filters)
            bound = tuple(weights) if ranks_by_bm25(index.fields) else ()
            score = f"-{RANKING}({table}, {', '.join('?' * len(bound))})" if bound else f"-{table}.rank"
            sql = (
                f"SELECT e.id, {score} AS score FROM {table} JOIN entries e ON e.rowid = {table}.rowid "
                f"WHERE {table} MATCH ? AND {condition} ORDER BY score DESC, e.id LIMIT ?"
            )
            try:
                ranked = self._db.run(sql, (*bound, match, *values, depth), (TEXT,))
            except VaultError:
                if _accepted(index.fields, "SELECT 1 FROM t WHERE t MATCH ?", match):  # so the fault is elsewhere
                    raise
                return []
        return [ScoredId(id_, value, place) for place, (id_, value) in enumerate(ranked, 1)]

    def _from_memory(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[tuple[str, float]] | None:
        """The best matches as (id, score); None for what FTS5 had better answer, or has to."""
        self._searches[index.name] += 1
        if self._searches[index.name] <= OFTEN or self.uncommitted() or not ranks_by_bm25(index.fields):
            return None
        analysis = columns(index)
        if not self.cache.holds("words", analysis.key) and self._size() * ENTRY > budget():
            return None  # the entries are counted once, because that takes as long as a search
        try:
            if (asked := phrases(match, index.tokenizer)) is None:
                return None
        except TokenError:
            return None
        with self._steady():
            try:
                counted = self.counted(analysis, EVERYTHING)
            except TokenError:
                self._searches[index.name] = -sys.maxsize  # so that it is not tried again and again
                return None
            known = self.cache.get("phrases", analysis.key, lambda: Phrases(counted, budget() // PHRASE_BYTES))
            return known.best(asked, tuple(weights), filters, None if depth < 0 else depth)


@lru_cache
def ranks_by_bm25(fields: tuple[str, ...]) -> bool:
    """Whether this build of FTS5 can weigh these fields."""
    return _accepted(fields, f"SELECT {RANKING}(t) FROM t WHERE t MATCH 'a'")


def _accepted(fields: Sequence[str], sql: str, *values: str) -> bool:
    """Whether FTS5 takes a statement on a table without rows: that does not depend on the vault at hand."""
    db = apsw.Connection(":memory:")
    names = ", ".join(f'"{name}"' for name in fields)
    db.execute(f"CREATE VIRTUAL TABLE t USING fts5({names})")
    try:
        db.execute(sql, values).fetchall()
    except apsw.SQLError:
        return False
    return True


class TokenError(ValueError):
    """A text that FTS5 cuts, or that cannot be read without it."""


class TokenPhrase(NamedTuple):
    """Consecutive tokens; of the last one a prefix is enough where `prefix` is set."""

    tokens: tuple[str, ...]
    prefix: bool


def fts5_tokens(tokenizer: str, text: str) -> list[str]:
    """The tokens that FTS5 finds in a text.

    Raises TokenError for one that it would cut.
    """
    known: dict[str, Any] = _own.__dict__.setdefault("tokenizers", {})
    if tokenizer not in known:
        name, *arguments = tokenizer.split()
        connection = tokenizing(apsw.Connection(":memory:"))
        known[tokenizer] = connection.fts5_tokenizer(name, arguments)
    raw = text.encode()
    tokens: list[str] = known[tokenizer](
        raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    if len(raw) > LONGEST_TOKEN and any(len(token.encode()) >= LONGEST_TOKEN for token in tokens):
        raise TokenError("a token is too long")
    return tokens


def columns(index: KeywordIndex) -> WordAnalyzer:
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

    return WordAnalyzer(f"fts5 {index.name} {index.tokenizer}", read, index.fields, index=index.name)


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


@dataclass(eq=False)
class Phrases:
    """A keyword index in memory: all rows of it, whatever the scope, because FTS5 counts all.

    How often a phrase occurs in a segment is kept as long as the segment, `most` rows in all; what that adds
    depends on all rows.
    """

    counted: ScopedPostings
    most: int

    def best(
        self, wanted: Sequence[TokenPhrase], weights: tuple[float, ...], filters: Filters, depth: int | None
    ) -> list[tuple[str, float]]:
        """The ids and scores of the best rows in scope, ties by ascending id; see `Counted.best`."""
        scores, held = np.zeros(len(self.counted.lengths)), np.zeros(len(self.counted.lengths), dtype=bool)
        size, within = len(self.counted.numbers), self.counted.inside
        for phrase in wanted:
            parts, first = [], 0
            for segment in self.counted.segments:
                local, part = self._often(segment, phrase, weights)
                parts.append((local + first, part))
                first += len(segment.lengths)
            rows, often = (np.concatenate(part) for part in zip(*parts, strict=True))
            if within is not None:
                rows, often = rows[within[rows]], often[within[rows]]
            idf = math.log((size - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += (idf if idf > 0 else LEAST_IDF) * (often * (K1 + 1.0) / (often + self._norm[rows]))
            held[rows] = True
        if filters:
            held &= self.counted.within(filters)
        return self.counted.best(scores, np.flatnonzero(held), depth)

    def _often(self, segment: Segment, phrase: TokenPhrase, weights: tuple[float, ...]) -> tuple[Indices, Floats]:
        """The rows of a segment that hold a phrase, and how often, weighed by field."""
        kept, key = segment.made, (phrase, weights)
        known: tuple[Indices, Floats] | None = kept.get(key)
        if known is None:
            where = _where(segment, phrase)
            rows, row_of = np.unique(where >> ROW, return_inverse=True)
            fields = (where & ((1 << ROW) - 1)) >> FIELD
            # Added in the order in which FTS5 adds: rounding makes sums of weights such as 0.1 depend on it.
            often = np.bincount(row_of, weights=np.array(weights)[fields], minlength=len(rows)).astype(np.float64)
            known = rows, often
            if kept.get("rows", 0) + len(rows) >= self.most:
                kept.clear()
            kept["rows"] = kept.get("rows", 0) + len(rows) + 1
            kept[key] = known
        return known

    @cached_property
    def _norm(self) -> Floats:
        """float64[rows]: how much more often a phrase has to occur in a longer row."""
        lengths, mean = self.counted.lengths.astype(np.float64), self.counted.mean_length
        return K1 * (1 - B + B * lengths / mean) if mean else lengths


def _where(segment: Segment, phrase: TokenPhrase) -> Indices:
    """Where a phrase begins: rows and positions in one number, ascending."""
    begins: Indices | None = None
    for offset, token in enumerate(phrase.tokens):
        last = phrase.prefix and offset == len(phrase.tokens) - 1
        postings = segment.beginning(token) if last else [segment.posting(token)]
        in_rows = [(np.repeat(posting.at, posting.counts) << ROW) + posting.positions for posting in postings]
        places = np.concatenate([_NOWHERE, *in_rows])
        # The words of a prefix were read one after another: no place occurs twice, but they are not sorted.
        places = (np.sort(places) if last else places) - offset
        begins = places if begins is None else np.intersect1d(begins, places, assume_unique=True)
    return _NOWHERE if begins is None else begins
