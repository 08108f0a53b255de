"""The words of a vault's entries, counted once: postings that last in the file, and in memory what changed since.

An index is stored with its revision; the journal, which every write extends in its own transaction, has the rest.
Whoever searches reads what changed since; whoever indexes stores the words anew when that has become much. The
words of a keyword index are those that FTS5 has counted, read word by word through its fts5vocab tables.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Bools, Indices
from steelyard.base.errors import VaultError
from steelyard.memory.query import Filters
from steelyard.stores.postings import NOTHING, Posting, Postings, Read, ScopedPostings, Segment, WordAnalyzer
from steelyard.stores.sqlite.file import VaultFile
from steelyard.stores.sqlite.guard import BLOB, INTEGER, NULL, ROWS, TEXT
from steelyard.stores.sqlite.schema import damaged, from_rows, select

MIN_TEXTS_TO_STORE = 2_000
"""Entries; the words of fewer are counted in a tenth of a second."""
CHANGES, CHANGES_SHARE = 1_024, 1 / 16
"""More changes than these since an index was stored, or than this share of its entries, and it is stored anew."""
TEXTS_PER_BLOCK = 2**13
"""Texts whose words are in memory at a time while an index is made; of the others, how often each occurs where."""
MOST_WORDS = 50_000
"""How many words' postings are kept of what is stored: reading them again takes longer than a search."""
FIELD = 24
"""The bits of a position that count tokens; those above are the number of the field."""
ODD = "the postings of a word do not agree"
LONGEST_SIZE = 5
"""Bytes of a number of tokens; a field has fewer than 2**32."""


@dataclass(frozen=True, eq=False)
class _Index:
    """The words of all entries: `base`, which is stored or in memory, and what `changed` since, by rowid.

    `alive` is false for those of the base that changed or are gone.
    """

    vault: "WordTables"
    base: Segment
    of_base: Indices
    """The rowids of the base."""
    alive: Bools
    changed: Mapping[int, Read] = field(default_factory=dict)

    @cached_property
    def counted(self) -> ScopedPostings:
        """All of it."""
        rowids = np.concatenate([self.of_base, np.array(list(self.changed), dtype=np.int64)])
        whole = np.concatenate([self.alive, np.ones(len(self.changed), dtype=bool)])

        def within(asked: Filters) -> Bools:
            return np.asarray(np.isin(rowids, self.vault._inside(asked)) & whole)

        segments, scope = [self.base, Postings.of(self.changed.values())], None if whole.all() else whole
        return ScopedPostings(segments, scope, lambda texts: self.vault._ids_of(rowids[texts]), within)


class WordTables(VaultFile):
    """See `steelyard.stores.base.ReadableStore.counted`."""

    def counted(self, analysis: WordAnalyzer, filters: Filters) -> ScopedPostings:
        load = partial(self._load, analysis)
        with self._steady():
            index: _Index = self.cache.get("words", analysis.key, load, renew=partial(self._update, analysis))
            return index.counted.only(index.counted.within(filters)) if filters else index.counted

    def _load(self, analysis: WordAnalyzer) -> _Index:
        """What is stored, with what changed since; all words in memory where nothing is."""
        if analysis.index:
            terms = TermSegment.of(self, analysis.index, analysis.fields)
            return _Index(self, terms, terms.rowids, np.ones_like(terms.rowids, dtype=bool))
        sql = "SELECT number, revision, entries, lengths FROM word_indexes WHERE name = ?"
        stored = self._db.run(sql, (analysis.key,), (INTEGER, INTEGER, BLOB, BLOB))
        if not stored:
            rowids = self._numbers_of("SELECT rowid FROM entries ORDER BY rowid", ())
            words = Postings.of(read for _, read in self._texts(analysis))
            return _Index(self, words, rowids, np.ones_like(rowids, dtype=bool))
        [(number, revision, entries, lengths)] = stored
        rowids, sizes = _numbers(self, entries, 8), _numbers(self, lengths, 4)
        if len(rowids) != len(sizes) or (np.diff(rowids) <= 0).any():
            raise damaged(self.path, "the entries of its word index do not agree")
        stored_words = _Stored(self, number, revision, sizes)
        index = _Index(self, stored_words, rowids, np.ones_like(rowids, dtype=bool))
        return self._update(analysis, revision, index)

    def _update(self, analysis: WordAnalyzer, since: int, known: _Index) -> _Index:
        """The index with what changed since a revision; read anew where another one was stored meanwhile."""
        if isinstance(known.base, _Stored) and not known.base.there():
            return self._load(analysis)
        changed = self._changed(since)
        gone, texts = set(changed.tolist()), dict(self._texts(analysis, changed))
        words = {rowid: read for rowid, read in known.changed.items() if rowid not in gone} | texts
        if len(words) > max(CHANGES, CHANGES_SHARE * len(known.of_base)) and not isinstance(known.base, _Stored):
            return self._load(analysis)
        alive = known.alive & ~np.isin(known.of_base, changed)
        return _Index(self, known.base, known.of_base, alive, words)

    def _texts(self, analysis: WordAnalyzer, rowids: Indices | None = None) -> Iterator[tuple[int, Read]]:
        """The entries, all or these, by ascending rowid, and their words."""
        indexed = bool(analysis.index) or "id" in analysis.fields
        names = analysis.fields if indexed else ("id", *analysis.fields)  # entries need it
        some, values = "", tuple[str, ...]()
        if rowids is not None:
            some, values = "JOIN json_each(?) j ON j.value = e.rowid", (json.dumps(rowids.tolist()),)
        sql = select(names).replace("SELECT ", "SELECT e.rowid, ", 1)
        rows = self._db.each(f"{sql} {some} ORDER BY e.rowid", values)
        while block := [*islice(rows, ROWS)]:
            read = [row[1:] for row in block]
            for row, entry in zip(block, read if analysis.index else from_rows(names, read), strict=True):
                yield row[0], analysis.read(entry)

    # Storing

    def ensure_words(self, analyses: Iterable[WordAnalyzer]) -> None:
        """Store the words that are worth it and not stored, or were before much changed.

        Nothing else stores them: a search counts what is not there in memory. MachineError when the file
        cannot be written.
        """
        for analysis in analyses:
            if self._lacking(analysis) is None or self._size() < MIN_TEXTS_TO_STORE:
                continue
            with self.transaction():
                if (number := self._lacking(analysis)) is not None:  # another process may have stored it meanwhile
                    self._store(analysis, number)

    def drop_words(self) -> None:
        """Forget all that is stored of words."""
        with self.transaction():
            self._db.run("DELETE FROM postings")
            self._db.run("DELETE FROM word_indexes")
            self._revise()

    def word_indexes(self) -> list[tuple[str, int]]:
        """The names of what is stored of words, and how many entries changed since."""
        rows = self._db.run("SELECT name, revision FROM word_indexes ORDER BY name", (), (TEXT, INTEGER))
        return [(name, len(self._changed(revision))) for name, revision in rows]

    def _size(self) -> int:
        return int(self._one("SELECT count(*) FROM entries"))

    def _lacking(self, analysis: WordAnalyzer) -> int | None:
        """The number for an index that is to be stored; None where the one that is stored will do."""
        sql = "SELECT revision, length(entries) / 8 FROM word_indexes WHERE name = ?"
        for revision, size in self._db.run(sql, (analysis.key,), (INTEGER, INTEGER)):
            if len(self._changed(revision)) <= max(CHANGES, CHANGES_SHARE * size):
                return None
        return int(self._one("SELECT coalesce(max(number), 0) + 1 FROM word_indexes"))

    def _store(self, analysis: WordAnalyzer, number: int) -> None:
        """Count all entries; the index gets a new number, so that nobody reads half of an old one."""
        rowids = self._numbers_of("SELECT rowid FROM entries ORDER BY rowid", ())
        blocks, reads = list[Postings](), (read for _, read in self._texts(analysis))
        for _ in range(0, len(rowids), TEXTS_PER_BLOCK):
            blocks.append(Postings.of(islice(reads, TEXTS_PER_BLOCK), blocks))
        lengths = np.concatenate([NOTHING.at, *(block.lengths for block in blocks)])
        self._revise()
        old = "(SELECT number FROM word_indexes WHERE name = ?)"
        self._db.run(f"DELETE FROM postings WHERE number IN {old}", (analysis.key,))
        self._db.run("DELETE FROM word_indexes WHERE name = ?", (analysis.key,))
        self._db.run(
            "INSERT INTO word_indexes VALUES(?, ?, ?, ?, ?)",
            (number, analysis.key, self.at()[1], _bytes(rowids, 8), _bytes(lengths, 4)),
        )
        self._db.many("INSERT INTO postings VALUES(?, ?, ?, ?, ?)", ((number, *row) for row in _encoded(blocks)))


@dataclass(frozen=True, eq=False)
class _Stored(Segment):
    """A segment in the file; what was asked for is kept."""

    vault: WordTables
    number: int
    revision: int
    lengths: Indices
    made: dict[Any, Any] = field(default_factory=dict)
    _known: dict[str, Posting] = field(default_factory=dict)

    def posting(self, word: str) -> Posting:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= MOST_WORDS:
                self._known.clear()
            sql = (
                "SELECT p.entries, p.counts, p.positions FROM word_indexes w CROSS JOIN json_each(?) j LEFT JOIN "
                "postings p ON p.number = w.number AND p.word = j.value WHERE w.number = ? AND w.revision = ?"
            )
            values = (json.dumps([word]), self.number, self.revision)
            if not (rows := self.vault._db.run(sql, values, (BLOB | NULL,) * 3)):
                raise VaultError(f"another program changed {self.vault.path} during the search; search again")
            known = self._known[word] = NOTHING if rows[0][0] is None else self._decoded(*rows[0])
        return known

    def there(self) -> bool:
        """Whether it is still what the vault holds."""
        sql = "SELECT EXISTS (SELECT 1 FROM word_indexes WHERE number = ? AND revision = ?)"
        return bool(self.vault._one(sql, (self.number, self.revision)))

    def _decoded(self, entries: bytes, often: bytes, places: bytes) -> Posting:
        """Where a word occurs."""
        held = _numbers(self.vault, entries, 4)
        counts = _numbers(self.vault, often or b"", 1 if len(often or b"") * 4 == len(entries) else 4)
        total = int(counts.sum())
        positions = _numbers(self.vault, places or b"", 2 if len(places or b"") == 2 * total else 4)
        sound = len(held) == len(counts) > 0 and held[-1] < len(self.lengths) and counts.min() > 0
        if not sound or not (np.diff(held) > 0).all() or len(positions) not in (0, total):
            raise damaged(self.vault.path, ODD)
        return Posting(held, counts, positions)


def _numbers(vault: WordTables, blob: bytes, size: int) -> Indices:
    """Numbers from the file, int64, none below 0."""
    if len(blob) % size:
        raise damaged(vault.path, "a word index is cut off")
    numbers = np.frombuffer(blob, dtype=f"<i{size}" if size > 2 else f"<u{size}").astype(np.int64)
    if len(numbers) and numbers.min() < 0:
        raise damaged(vault.path, "a word index has numbers below 0")
    return numbers


def _encoded(blocks: Sequence[Postings]) -> Iterator[tuple[str, bytes, bytes, bytes]]:
    """Each word with its posting of all blocks, which are cut as bytes: arrays take ten times as long."""
    held = [(b.begins.tolist(), b.places, *(_bytes(part, 4) for part in b.complete)) for b in blocks]
    for word, code in sorted(blocks[0].words.items()) if blocks else ():
        at, often, found = b"", b"", b""
        for begins, places, *whole in held:
            if code + 1 < len(begins):
                begin, end = begins[code : code + 2]
                at, often = at + whole[0][4 * begin : 4 * end], often + whole[1][4 * begin : 4 * end]
                found += whole[2][4 * places[begin] : 4 * places[end]] if len(places) else b""
        counts, positions = np.frombuffer(often, dtype="<i4"), np.frombuffer(found, dtype="<i4")
        counted = _bytes(counts, 1 if counts.max() < 2**8 else 4)
        yield word, at, counted, _bytes(positions, 2 if len(found) and positions.max() < 2**16 else 4)


def _bytes(numbers: NDArray[Any], size: int) -> bytes:
    return numbers.astype(f"<i{size}" if size > 2 else f"<u{size}").tobytes()


@dataclass(frozen=True, eq=False)
class TermSegment(Segment):
    """A segment: the rows of a keyword index at a revision, and how many tokens each has.

    A word is read from the index as it is when it is first searched for, which takes about as long as one search
    for it by FTS5. The rows that changed by then are not to be trusted; those that were added are left out.
    """

    vault: WordTables
    index: str
    fields: Sequence[str]
    rowids: Indices
    lengths: Indices
    made: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, vault: WordTables, index: str, fields: Sequence[str]) -> "TermSegment":
        """The rows that there are now."""
        rows = vault._db.run(f"SELECT id, sz FROM fts_{index}_docsize ORDER BY id")
        rowids = np.fromiter((rowid for rowid, _ in rows), dtype=np.int64, count=len(rows))
        try:
            lengths = _lengths([sizes for _, sizes in rows], len(fields))
        except (TypeError, ValueError) as error:
            raise damaged(vault.path, error) from None
        return cls(vault, index, fields, rowids, lengths)

    def posting(self, word: str) -> Posting:
        """See Segment.posting; positions hold the number of the field, too."""
        return self._read(self._instances("term = ?", word))

    def beginning(self, prefix: str) -> list[Posting]:
        return [self._read(takewhile(lambda row: row[0].startswith(prefix), self._instances("term >= ?", prefix)))]

    def _instances(self, which: str, value: str) -> Iterator[Any]:
        """Of each of these words, ascending: itself, its rowids and its places, as texts of numbers.

        They are read one by one, because FTS5 goes through a word before it gives it.
        """
        table, db = f"temp.terms_instance_{self.index}", self.vault._db
        db.run(f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5vocab(main, fts_{self.index}, instance)")
        fields = " ".join(f"WHEN '{name}' THEN {number << FIELD}" for number, name in enumerate(self.fields))
        joined = f"group_concat(doc, ' '), group_concat(CASE col {fields} END + offset, ' ')"
        sql = f"SELECT term, {joined} FROM {table} WHERE {which} GROUP BY term ORDER BY term"
        return db.each(sql, (value,), ahead=1)

    def _read(self, rows: Iterable[Any]) -> Posting:
        """What lies in the rows of words, one word after another."""
        words = [[np.fromstring(text or "", dtype=np.int64, sep=" ") for text in row[1:]] for row in rows]
        if not words:
            return NOTHING
        rowids, places = (np.concatenate(parts) for parts in zip(*words, strict=True))
        falls = np.flatnonzero(rowids[1:] < rowids[:-1]) + 1  # each word begins with the first of its rows
        beyond = places.max(initial=0) >= len(self.fields) << FIELD
        ends = np.cumsum([len(docs) for docs, _ in words])
        if len(rowids) != len(places) or not set(falls.tolist()) <= set(ends.tolist()) or beyond:
            raise damaged(self.vault.path, f"the keyword index {self.index} contradicts itself")
        first = np.flatnonzero(np.concatenate([[True], rowids[1:] != rowids[:-1]])[: len(rowids)])
        texts = np.searchsorted(self.rowids, rowids[first])
        known = np.append(self.rowids, -1)[texts] == rowids[first]
        return Posting(texts, np.diff(first, append=len(rowids)), places).of(known)


def _lengths(blobs: Sequence[bytes], fields: int) -> Indices:
    """How many tokens each row has: blobs of a varint a field, seven bits a byte with the highest first.

    Raises TypeError for a value that is not a blob, ValueError for one that is cut off or counts other fields.
    Source: SQLite, Database File Format, section 1.6, and fts5_storage.c.
    """
    raw = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    last = raw < 128
    ends = np.flatnonzero(last)
    number: Indices = np.cumsum(last) - last
    if len(number) and number[-1] >= len(ends):
        raise ValueError("a number of tokens is cut off")
    place = ends[number] - np.arange(len(raw))
    counted = np.searchsorted(ends, np.cumsum([len(blob) for blob in blobs]))
    if (np.diff(counted, prepend=0) != fields).any() or place.max(initial=0) >= LONGEST_SIZE:
        raise ValueError("the numbers of tokens are not one a field")
    sizes = np.bincount(number, weights=(raw & 127) * 128.0**place, minlength=len(ends))
    return np.asarray(sizes.astype(np.int64).reshape(len(blobs), fields).sum(axis=1))
