"""The keyword indexes of a vault: FTS5 tables that triggers keep equal to the entries.

Whoever searches often is answered from postings in memory, with the bits of FTS5.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import apsw

from steelyard.base.errors import VaultError, visible
from steelyard.base.machine import budget
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.stores.base import Found, KeywordIndex
from steelyard.stores.postings import Counted
from steelyard.stores.sqlite.phrases import Phrases, TokenError, columns, phrases
from steelyard.stores.sqlite.schema import index_statements, where
from steelyard.stores.sqlite.words import WordTables

TIES = 32
"""Matches read beyond a cut, so that a tie across it is seldom searched for a second time."""
ENTRY = 64
"""About as many bytes as an entry takes in memory beside its words."""
ROW = 32
"""Bytes for each entry that a phrase occurs in: its number twice, how often, and what that adds."""
OFTEN = 10
"""Searches of one index after which words are read into memory; a command that searches once is faster without."""
RANKING = "bm25"
"""The function that weighs fields; FTS5 has it since 3.9, and a build may leave it out."""


class KeywordTables(WordTables):
    """See `steelyard.stores.base.Store`."""

    def ensure_index(self, index: KeywordIndex) -> None:
        """See Store.ensure_index."""
        if not self._has(index):
            with self.transaction():
                if not self._has(index):  # another process may have made it meanwhile
                    self._create_index(index)

    def _has(self, index: KeywordIndex) -> bool:
        """Whether the index is there; VaultError when it has other settings."""
        stored = self._index_settings(index)
        if stored is not None and stored != (json.dumps(index.fields), index.tokenizer):
            raise VaultError(
                f"keyword index {index.name!r} of {self.path} covers {visible(stored[0])} "
                f"with tokenizer {stored[1]!r}, "
                f"the system asks for {json.dumps(index.fields)} with {index.tokenizer!r}; "
                "run steelyard index VAULT --rebuild"
            )
        return stored is not None

    def rebuild_indexes(self, indexes: Iterable[KeywordIndex]) -> None:
        """Drop every keyword index and build these anew, in one transaction."""
        with self.transaction():
            for (name,) in self._db.execute("SELECT name FROM keyword_indexes").fetchall():
                self._drop_index(KeywordIndex(str(name), ()))
            self._db.execute("DELETE FROM keyword_indexes")
            for index in indexes:
                self._create_index(index)

    def _drop_index(self, index: KeywordIndex) -> None:
        for event in ("insert", "update", "delete"):
            self._db.execute(f"DROP TRIGGER fts_{index.name}_{event}")
        self._db.execute(f"DROP TABLE fts_{index.name}")

    def _index_settings(self, index: KeywordIndex) -> tuple[str, str] | None:
        sql = "SELECT fields, tokenizer FROM keyword_indexes WHERE name = ?"
        row: tuple[str, str] | None = self._db.execute(sql, (index.name,)).fetchone()
        return row

    def _create_index(self, index: KeywordIndex) -> None:
        for statement in index_statements(index):
            self._db.execute(statement)
        self._db.execute(f"INSERT INTO fts_{index.name}(fts_{index.name}) VALUES('rebuild')")
        self._db.execute(
            "INSERT INTO keyword_indexes VALUES(?, ?, ?)", (index.name, json.dumps(index.fields), index.tokenizer)
        )

    def index_bytes(self, index: KeywordIndex) -> int:
        """Bytes of a keyword index: words with their entries, lengths of entries; 0 before it is made."""
        if self._index_settings(index) is None:
            return 0
        return sum(
            int(size)
            for table, column in (("data", "block"), ("docsize", "sz"))
            for (size,) in self._db.execute(f"SELECT total(length({column})) FROM fts_{index.name}_{table}")
        )

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Found]:
        """See Store.keyword. SQLite's bm25 is negative with the best lowest; the score is its negation."""
        if not match:
            return []
        self._make_ready(index)
        ranked = self._from_memory(index, match, weights, filters, depth)
        try:
            ranked = self._best(index, match, weights, filters, depth) if ranked is None else ranked
        except VaultError:
            if readable(match, index.fields):
                raise
            return []
        return [Found(id_, value, place) for place, (id_, value) in enumerate(ranked, 1)]

    def _make_ready(self, index: KeywordIndex) -> None:
        if self._told:
            self.ensure_index(index)
        elif not self._has(index):
            raise VaultError(
                f"{self.path} has no keyword index {index.name!r}, and searching writes nothing; run steelyard "
                f"index {self.path} --rebuild"
            )

    def _from_memory(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[tuple[str, float]] | None:
        """The best matches as (id, score); None for what FTS5 had better answer, or has to."""
        self._searches[index.name] += 1
        if self._searches[index.name] <= OFTEN or self._writing or not ranks_by_bm25(index.fields):
            return None
        if ("words", columns(index).key) not in self._memory_of and self._size() * ENTRY > budget():
            return None  # the entries are counted once, because that takes as long as a search
        try:
            asked = phrases(match, index.tokenizer)
            if asked is None:
                return None
            with self._steady():
                counted = self._postings(index)
                known: Phrases = counted.made.setdefault("phrases", Phrases(counted, budget() // ROW))
                return known.best(asked, weights, filters, None if depth < 0 else depth)
        except TokenError:
            return None

    def _postings(self, index: KeywordIndex) -> Counted:
        try:
            return self.counted(columns(index), EVERYTHING)
        except TokenError:
            self._searches[index.name] = -sys.maxsize  # so that it is not tried again and again
            raise

    def _best(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[Any]:
        """The matches as (id, score), best first."""
        table = f"fts_{index.name}"
        score, bound = ranking(table, index.fields, weights)
        condition, values = where(filters)
        if depth > 0 and not filters:
            # Cut before the ids are read, with room for a tie that crosses the cut, because ids decide it.
            asked = depth + TIES
            sql = (
                f"SELECT e.id, best.score FROM (SELECT rowid, {score} AS score FROM {table} WHERE {table} MATCH ? "
                "ORDER BY score DESC LIMIT ?) best JOIN entries e ON e.rowid = best.rowid "
                "ORDER BY best.score DESC, e.id"
            )
            rows = self._rows(sql, (*bound, match, asked))
            if len(rows) < asked or rows[-1][1] < rows[depth - 1][1]:
                return rows[:depth]
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
