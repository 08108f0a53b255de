"""Reads graded judgments from files of four columns, as in TREC, or three, as in BEIR."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field

from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.datasets.corpus_and_queries import Item, JsonLines
from steelyard_eval.datasets.file_reader import FolderReader

GRADES = {-1: 0, 0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
"""Grades by the number that is written. TREC sets write -1 for "judged, not relevant"."""
COMMENT = "#"
"""How a comment begins."""
_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?%?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
"""What people write for a number: not a word that heads a column."""

TREC = ("query", "iteration", "entry", "grade")
BEIR = ("query", "entry", "grade")


@dataclass(frozen=True, slots=True)
class Qrels:
    """The judgments read so far: query -> entry -> grade. Ids of a table that is None are not checked."""

    reader: FolderReader
    queries: JsonLines[Query] | None
    entries: JsonLines[Entry] | None
    grades: dict[str, dict[str, int]] = field(default_factory=dict)

    def read(self, file: str) -> set[str]:
        """Add the judgments of a file and return the ids of its queries.

        The first line determines whether the file has three or four columns; a header of three is skipped, and so
        are comments.
        """
        named: set[str] = set()
        read = ((line, text.split()) for line, text in self.reader.lines(file) or [] if text is not None)
        lines = [(line, values) for line, values in read if not self._is_comment(values)]
        columns = _columns(file, lines[0][1] if lines else [])
        for line, values in lines:
            text = " ".join(values)
            if len(values) != len(columns):
                rule = f"must have {len(columns)} columns: {' '.join(columns)}"
                commas = text.count(",") >= len(BEIR) - 1 and len(values) == 1
                remedy = "Put blanks or tabs where it has commas" if commas else "Correct the line"
                self.reader.fault(file, line, "", shown(text.strip()), rule, remedy)
            elif line != lines[0][0] or not self._is_header(values):
                self._add(file, line, dict(zip(columns, values, strict=True)))
                named.add(values[0])
        return named

    def _is_comment(self, values: list[str]) -> bool:
        """Whether a line begins as a comment does, and is no judgment of an id that begins so."""
        if not values[0].startswith(COMMENT) or values[0] in _ids(self.queries):
            return False
        judges = len(values) in (len(BEIR), len(TREC)) and whole_number(values[-1]) is not None
        if not judges or values[0] == COMMENT:
            return True
        return self.entries is not None and values[-2] not in self.entries.lines

    def _is_header(self, values: list[str]) -> bool:
        """Whether the first line heads columns: three words, none of them a number or an id that is known."""
        ids = values[0] in _ids(self.queries) or values[1] in _ids(self.entries)
        return len(values) == len(BEIR) and not ids and not _NUMBER.fullmatch(values[-1])

    def _add(self, file: str, line: int, judgment: dict[str, str]) -> None:
        query, entry, written = judgment["query"], judgment["entry"], judgment["grade"]
        self._check_known(file, line, "query", query, self.queries)
        self._check_known(file, line, "entry", entry, self.entries)
        grade = GRADES.get(number) if (number := whole_number(written)) is not None else None
        if grade is None:
            rule = "must be an integer in 0..4, or -1 for not relevant"
            self.reader.fault(file, line, "grade", shown(written), rule, "Map the grades onto 0..4")
            return
        first = self.grades.setdefault(query, {}).setdefault(entry, grade)
        if first != grade:
            rule = f"contradicts grade {first} given before for query {shown(query)}, entry {shown(entry)}"
            self.reader.fault(file, line, "grade", shown(written), rule, "Keep one of the judgments")

    def _check_known(
        self, file: str, line: int, name: str, identifier: str, known: JsonLines[Item] | None
    ) -> None:
        # When no line of the table has an id, that is the fault to report, and not every judgment.
        if known is not None and known.lines and identifier not in known.lines:
            rule = f"is the id of no {name}"
            self.reader.fault(file, line, name, shown(identifier), rule, "Add it, or remove the line")


def whole_number(written: str) -> int | None:
    """The whole number that a text writes, also as 1.0 or 1e0; None for a fraction and for what is no number.

    >>> whole_number("1.0"), whole_number("-1"), whole_number("0.5"), whole_number("nan")
    (1, -1, None, None)
    """
    if not written.isascii() or "_" in written:
        return None
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _ids(table: JsonLines[Item] | None) -> Container[str]:
    return table.lines if table is not None else ()


def _columns(file: str, first: list[str]) -> tuple[str, ...]:
    """The columns of a file by its first line, or by the file's name when that has neither three nor four."""
    return {3: BEIR, 4: TREC}.get(len(first), BEIR if file.endswith(".tsv") else TREC)
