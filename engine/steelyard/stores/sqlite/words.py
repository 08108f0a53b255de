"""The words of a vault's entries, counted once: postings that last in the file, and in memory what changed since.

An index is stored with its revision; the journal, which every write extends in its own transaction, has the rest.
Whoever searches reads what changed since; whoever indexes stores the words anew when that has become much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.base.errors import VaultError
from steelyard.memory.filters import Filters
from steelyard.stores.postings import (
    NOTHING,
    Analysis,
    Counted,
    Posting,
    Postings,
    Read,
    Segment,
    sums,
)
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.file import BLOB, INTEGER, NULL, TEXT
from steelyard.stores.sqlite.journal import SCOPES, Journal
from steelyard.stores.sqlite.schema import from_row, select
from steelyard.stores.sqlite.terms import TermSegment

WORTH_STORING = 2_000
"""Entries; the words of fewer are counted in a tenth of a second."""
CHANGES, CHANGES_SHARE = 1_024, 1 / 16
"""More changes than these since an index was stored, or than this share of its entries, and it is stored anew."""
BLOCK = 2**15
"""Texts whose words are in memory at a time while an index is made; of the others, how often each occurs where."""
MOST_WORDS = 50_000
"""How many words' postings are kept of what is stored: reading them again takes longer than a search."""


@dataclass(frozen=True, eq=False)
class _Index:
    """The words of all entries at a revision: `base`, which is stored or in memory, and what changed since.

    `rowids` are the entries of both; `alive` is false for those of the base that changed or are gone.
    """

    revision: int
    base: Segment
    rowids: Indices
    alive: Bools
    changed: dict[int, Read] = field(default_factory=dict)
    tail: Postings = field(default_factory=lambda: Postings.of(()))
    scopes: dict[Filters, Counted] = field(default_factory=dict)

    def updated(self, revision: int, changed: Indices, texts: dict[int, Read]) -> _Index:
        """The index at a later revision: these entries changed, and these are the words of those that are left."""
        gone = set(changed.tolist())
        reads = {rowid: read for rowid, read in self.changed.items() if rowid not in gone} | texts
        size = len(self.base.lengths)
        alive = self.alive[:size] & ~np.isin(self.rowids[:size], changed)
        return replace(
            self,
            revision=revision,
            rowids=np.concatenate([self.rowids[:size], np.array(list(reads), dtype=np.int64)]),
            alive=np.concatenate([alive, np.ones(len(reads), dtype=bool)]),
            changed=reads,
            tail=Postings.of(reads.values()),
            scopes={},
        )


class WordTables(Journal):
    """See `steelyard.stores.base.Readable.counted`."""

    def counted(self, analysis: Analysis, filters: Filters) -> Counted:
        """See Readable.counted."""
        with self._steady():
            load, update = partial(self._load, analysis), partial(self._update, analysis)
            index = self._kept(("words", analysis.key), load, update)
            known = index.scopes.get(filters) or self._scope(index, filters)
            index.scopes[filters] = known
            while len(index.scopes) > SCOPES:
                index.scopes.pop(next(iter(index.scopes)), None)
            return known

    def ensure_words(self, analyses: Iterable[Analysis]) -> None:
        """Store the words that are worth it and not stored, or were before much changed.

        Nothing else stores them: a search counts what is not there in memory. MachineError when the file
        cannot be written.
        """
        for analysis in analyses:
            if self._lacking(analysis) is None or self._size() < WORTH_STORING:
                continue
            with self.transaction():
                if (number := self._lacking(analysis)) is not None:  # another process may have stored it meanwhile
                    self._store(analysis, number)

    def drop_words(self) -> None:
        """Forget all that is stored of words."""
        with self.transaction():
            self._db.execute("DELETE FROM postings")
            self._db.execute("DELETE FROM word_indexes")
            self._revise()

    def word_indexes(self) -> list[tuple[str, int]]:
        """The names of what is stored of words, and how many entries changed since."""
        rows = self._rows("SELECT name, revision FROM word_indexes ORDER BY name", columns=(TEXT, INTEGER))
        return [(name, len(self._changed(revision))) for name, revision in rows]

    # Storing

    def _size(self) -> int:
        return int(self._one("SELECT count(*) FROM entries"))

    def _lacking(self, analysis: Analysis) -> int | None:
        """The number for an index that is to be stored; None where the one that is stored will do."""
        sql = "SELECT revision, length(entries) / 8 FROM word_indexes WHERE name = ?"
        for revision, size in self._rows(sql, (analysis.key,), (INTEGER, INTEGER)):
            if len(self._changed(revision)) <= max(CHANGES, CHANGES_SHARE * size):
                return None
        return int(self._one("SELECT coalesce(max(number), 0) + 1 FROM word_indexes"))

    def _store(self, analysis: Analysis, number: int) -> None:
        """Count all entries; the index gets a new number, so that nobody reads half of an old one."""
        rowids: list[int] = []

        def texts() -> Iterator[Read]:
            for rowid, read in self._texts(analysis):
                rowids.append(rowid)
                yield read

        blocks = list(Postings.blocks(texts(), BLOCK))
        counted = Counted(blocks, None, lambda _: [], lambda _: np.zeros(0, dtype=bool))
        self._revise()
        for (old,) in self._db.execute(
            "SELECT number FROM word_indexes WHERE name = ?", (analysis.key,)
        ).fetchall():
            self._db.execute("DELETE FROM postings WHERE number = ?", (old,))
            self._db.execute("DELETE FROM word_indexes WHERE number = ?", (old,))
        self._db.execute(
            "INSERT INTO word_indexes VALUES(?, ?, ?, ?, ?)",
            (number, analysis.key, self.revision(), _bytes(np.array(rowids), 8), _bytes(counted.lengths, 4)),
        )
        words = sorted(set().union(*(block.words for block in blocks)))
        rows = ((number, word, *_encoded(counted.posting(word))) for word in words)
        self._db.executemany("INSERT INTO postings VALUES(?, ?, ?, ?, ?)", rows)

    def _texts(self, analysis: Analysis, rowids: Indices | None = None) -> Iterator[tuple[int, Read]]:
        """The entries, all or these, by ascending rowid, and their words."""
        # `from_row` needs the id; `skipped` is 1 where it was added for that and the analysis does not read it.
        names = analysis.fields if "id" in analysis.fields else ("id", *analysis.fields)
        skipped = len(names) - len(analysis.fields)
        sql = select(names).replace("SELECT ", "SELECT e.rowid, ", 1)
        if rowids is None:
            cursor = self._db.execute(f"{sql} ORDER BY e.rowid")
        else:
            listed = json.dumps(rowids.tolist())
            cursor = self._db.execute(
                f"{sql} JOIN json_each(?) j ON j.value = e.rowid ORDER BY e.rowid", (listed,)
            )
        for rowid, *row in cursor:
            yield rowid, analysis.read(row[skipped:] if analysis.index else from_row(names, row))

    # Reading

    def _load(self, analysis: Analysis) -> _Index:
        """What is stored, with what changed since; all words in memory where nothing is."""
        if analysis.index:
            terms = TermSegment.of(self, analysis.index, analysis.fields)
            return _Index(self.revision(), terms, terms.rowids, np.ones(len(terms.rowids), dtype=bool))
        sql = "SELECT number, revision, entries, lengths FROM word_indexes WHERE name = ?"
        stored = self._rows(sql, (analysis.key,), (INTEGER, INTEGER, BLOB, BLOB))
        if not stored:
            texts = dict(self._texts(analysis))
            rowids = np.fromiter(texts, dtype=np.int64, count=len(texts))
            return _Index(self.revision(), Postings.of(texts.values()), rowids, np.ones(len(rowids), dtype=bool))
        [(number, revision, entries, lengths)] = stored
        rowids, sizes = self._numbers(entries, 8), self._numbers(lengths, 4)
        if len(rowids) != len(sizes) or (np.diff(rowids) <= 0).any():
            raise damaged(self.path, "the entries of its word index do not agree")
        base = _Stored(self, number, revision, sizes)
        return self._update(analysis, _Index(revision, base, rowids, np.ones(len(rowids), dtype=bool)))

    def _update(self, analysis: Analysis, known: _Index) -> _Index:
        """The index with what changed since; read anew where another one was stored meanwhile."""
        if isinstance(known.base, _Stored) and not known.base.there():
            return self._load(analysis)
        changed = self._changed(known.revision)
        updated = known.updated(self.revision(), changed, dict(self._texts(analysis, changed)))
        much = len(updated.changed) > max(CHANGES, CHANGES_SHARE * len(known.base.lengths))
        return self._load(analysis) if much and not isinstance(known.base, _Stored) else updated

    def _scope(self, index: _Index, filters: Filters) -> Counted:
        @lru_cache(SCOPES)
        def within(asked: Filters) -> Bools:
            return np.isin(index.rowids, self._inside(asked)) & index.alive

        inside = within(filters) if filters else None if index.alive.all() else index.alive
        return Counted([index.base, index.tail], inside, lambda texts: self._named(index.rowids[texts]), within)

    def _numbers(self, blob: bytes, size: int) -> Indices:
        """Numbers from the file, int64, none below 0."""
        if len(blob) % size:
            raise damaged(self.path, "a word index is cut off")
        numbers = np.frombuffer(blob, dtype=f"<i{size}" if size > 2 else f"<u{size}").astype(np.int64)
        if len(numbers) and numbers.min() < 0:
            raise damaged(self.path, "a word index has numbers below 0")
        return numbers

    def _posting(self, number: int, revision: int, size: int, word: str) -> Posting:
        """Where a word occurs among the `size` entries of a stored index."""
        sql = (
            "SELECT p.entries, p.counts, p.positions FROM word_indexes w "
            "LEFT JOIN postings p ON p.number = w.number AND p.word = ? WHERE w.number = ? AND w.revision = ?"
        )
        rows = self._rows(sql, (word, number, revision), (BLOB | NULL,) * 3)
        if not rows:
            raise self._replaced()
        if rows[0][0] is None:
            return NOTHING
        entries, often, places = (blob or b"" for blob in rows[0])
        held, counts = self._numbers(entries, 4), self._numbers(often, 1 if len(often) * 4 == len(entries) else 4)
        total = int(counts.sum())
        positions = self._numbers(places, 2 if len(places) == 2 * total else 4)
        sound = len(held) == len(counts) > 0 and held[-1] < size and counts.min() > 0 and (np.diff(held) > 0).all()
        if not sound or len(positions) not in (0, total):
            raise damaged(self.path, "the postings of a word do not agree")
        return Posting(held, counts, positions)

    def _entries(self, number: int, revision: int, size: int, words: Sequence[str]) -> Iterator[Indices]:
        """The entries of a stored index, by their places in it, that each word occurs in; int32."""
        sql = (
            "SELECT p.entries FROM word_indexes w CROSS JOIN json_each(?) j LEFT JOIN postings p "
            "ON p.number = w.number AND p.word = j.value WHERE w.number = ? AND w.revision = ? ORDER BY j.key"
        )
        rows = self._rows(sql, (json.dumps(list(words)), number, revision), (BLOB | NULL,))
        if len(rows) < len(words):
            raise self._replaced()
        for (blob,) in rows:
            if len(blob or b"") % 4:
                raise damaged(self.path, "a word index is cut off")
            places = np.frombuffer(blob or b"", dtype="<u4")
            if len(places) and places.max() >= size:
                raise damaged(self.path, "the postings of a word do not agree")
            yield places.view(np.int32)

    def _replaced(self) -> VaultError:
        return VaultError(f"the words of {self.path} were counted anew during the search; search again")


@dataclass(frozen=True, eq=False)
class _Stored:
    """A segment in the file; what was asked for is kept."""

    vault: WordTables
    number: int
    revision: int
    lengths: Indices
    made: dict[Any, Any] = field(default_factory=dict)
    _known: dict[str, Posting] = field(default_factory=dict)

    def posting(self, word: str) -> Posting:
        """See Segment.posting."""
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= MOST_WORDS:
                self._known.clear()
            known = self.vault._posting(self.number, self.revision, len(self.lengths), word)
            self._known[word] = known
        return known

    def frequencies(self, words: Sequence[str], inside: Bools | None) -> Indices:
        """See Segment.frequencies."""
        entries = self.vault._entries(self.number, self.revision, len(self.lengths), words)
        return sums(list(entries), inside)

    def beginning(self, prefix: str) -> list[Posting]:
        """See Segment.beginning."""
        sql = "SELECT word FROM postings WHERE number = ? AND word >= ? AND substr(word, 1, ?) = ?"
        rows = self.vault._rows(sql, (self.number, prefix, len(prefix), prefix))
        return [self.posting(word) for (word,) in list(rows)]

    def there(self) -> bool:
        """Whether it is still what the vault holds."""
        sql = "SELECT EXISTS (SELECT 1 FROM word_indexes WHERE number = ? AND revision = ?)"
        return bool(self.vault._one(sql, (self.number, self.revision)))


def _encoded(posting: Posting) -> Sequence[bytes]:
    counts = _bytes(posting.counts, 1 if posting.counts.max() < 2**8 else 4)
    places = posting.positions
    return _bytes(posting.at, 4), counts, _bytes(places, 2 if len(places) and places.max() < 2**16 else 4)


def _bytes(numbers: Indices, size: int) -> bytes:
    return numbers.astype(f"<i{size}" if size > 2 else f"<u{size}").tobytes()
