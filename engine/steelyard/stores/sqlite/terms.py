"""The postings of a keyword index as FTS5 keeps them, read word by word through its fts5vocab tables.

A word is read when it is first searched for, which takes about as long as one search for it by FTS5; the words
of a prefix are read in one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Protocol

import apsw
import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.base.errors import VaultError
from steelyard.stores.postings import NOTHING, Posting, sums
from steelyard.stores.sqlite.damage import damaged

FIELD = 24
"""The bits of a position that count tokens; those above are the number of the field."""
LONGEST_SIZE = 5
"""Bytes of a number of tokens; a field has fewer than 2**32."""


class File(Protocol):
    """What is needed of a vault."""

    path: str

    @property
    def _db(self) -> apsw.Connection: ...


@dataclass(frozen=True, eq=False)
class TermSegment:
    """A segment: the rows of a keyword index at a revision, and how many tokens each has.

    Words are read from the index as it is when they are asked for. The rows that changed by then are not to be
    trusted; those that were added are left out.
    """

    file: File
    index: str
    fields: Sequence[str]
    rowids: Indices
    lengths: Indices
    made: dict[Any, Any] = field(default_factory=dict)
    """What users of the rows compute from them, kept as long as they are."""

    @classmethod
    def of(cls, file: File, index: str, fields: Sequence[str]) -> TermSegment:
        """The rows that there are now."""
        rows: list[Any] = file._db.execute(f"SELECT id, sz FROM fts_{index}_docsize ORDER BY id").fetchall()
        rowids = np.fromiter((rowid for rowid, _ in rows), dtype=np.int64, count=len(rows))
        try:
            lengths = _lengths([sizes for _, sizes in rows], len(fields))
        except (TypeError, ValueError) as error:
            raise damaged(file.path, error) from None
        return cls(file, index, fields, rowids, lengths)

    def posting(self, word: str) -> Posting:
        """See Segment.posting; positions hold the number of the field, too."""
        return self._read(self._instances("term = ?", word))

    def frequencies(self, words: Sequence[str], inside: Bools | None) -> Indices:
        """See Segment.frequencies."""
        return sums([self.posting(word).at for word in words], inside)

    def beginning(self, prefix: str) -> list[Posting]:
        """See Segment.beginning."""
        return [self._read(takewhile(lambda row: row[0].startswith(prefix), self._instances("term >= ?", prefix)))]

    def _instances(self, which: str, value: str) -> Iterator[Any]:
        """Of each of these words, ascending: itself, its rowids and its places, as texts of numbers.

        They are read one by one, because FTS5 goes through a word before it gives it.
        """
        table, db = f"temp.terms_instance_{self.index}", self.file._db
        db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5vocab(main, fts_{self.index}, instance)")
        fields = " ".join(f"WHEN '{name}' THEN {number << FIELD}" for number, name in enumerate(self.fields))
        joined = f"group_concat(doc, ' '), group_concat(CASE col {fields} END + offset, ' ')"
        sql = f"SELECT term, {joined} FROM {table} WHERE {which} GROUP BY term ORDER BY term"
        return iter(db.execute(sql, (value,)).fetchone, None)

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
            raise self._odd()
        first = np.flatnonzero(np.concatenate([[True], rowids[1:] != rowids[:-1]])[: len(rowids)])
        texts = np.searchsorted(self.rowids, rowids[first])
        known = np.append(self.rowids, -1)[texts] == rowids[first]
        return Posting(texts, np.diff(first, append=len(rowids)), places).of(known)

    def _odd(self) -> VaultError:
        return damaged(self.file.path, f"the keyword index {self.index} contradicts itself")


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
    lengths: Indices = sizes.astype(np.int64).reshape(len(blobs), fields).sum(axis=1)
    return lengths
