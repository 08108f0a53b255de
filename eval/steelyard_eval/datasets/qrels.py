"""Reads graded judgments from files of four columns, as in TREC, or three, as in BEIR."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.datasets.corpus_and_queries import Item, JsonLines
from steelyard_eval.datasets.file_reader import FolderReader

GRADES = {"-1": 0, "0": 0, "1": 1, "2": 2, "3": 3, "4": 4}
"""Grades as they are written. TREC sets write -1 for "judged, not relevant"."""

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

        The first line determines whether the file has three or four columns; a header of three is skipped.
        """
        named: set[str] = set()
        lines = self.reader.lines(file) or []
        columns = _columns(file, next((text for _, text in lines if text is not None), ""))
        for line, text in lines:
            if text is None:
                continue
            values = text.split()
            if len(values) != len(columns):
                rule = f"must have {len(columns)} columns: {' '.join(columns)}"
                commas = text.count(",") >= len(BEIR) - 1 and len(values) == 1
                remedy = "Put blanks or tabs where it has commas" if commas else "Correct the line"
                self.reader.fault(file, line, "", shown(text.strip()), rule, remedy)
            elif not (columns is BEIR and line == 1 and values[-1] not in GRADES):
                self._add(file, line, dict(zip(columns, values, strict=True)))
                named.add(values[0])
        return named

    def _add(self, file: str, line: int, judgment: dict[str, str]) -> None:
        query, entry, written = judgment["query"], judgment["entry"], judgment["grade"]
        self._check_known(file, line, "query", query, self.queries)
        self._check_known(file, line, "entry", entry, self.entries)
        if written not in GRADES:
            rule = "must be an integer in 0..4, or -1 for not relevant"
            self.reader.fault(file, line, "grade", shown(written), rule, "Map the grades onto 0..4")
            return
        first = self.grades.setdefault(query, {}).setdefault(entry, GRADES[written])
        if first != GRADES[written]:
            rule = f"contradicts grade {first} given before for query {shown(query)}, entry {shown(entry)}"
            self.reader.fault(file, line, "grade", shown(written), rule, "Keep one of the judgments")

    def _check_known(
        self, file: str, line: int, name: str, identifier: str, known: JsonLines[Item] | None
    ) -> None:
        # When no line of the table has an id, that is the fault to report, and not every judgment.
        if known is not None and known.lines and identifier not in known.lines:
            rule = f"is the id of no {name}"
            self.reader.fault(file, line, name, shown(identifier), rule, "Add it, or remove the line")


def _columns(file: str, first: str) -> tuple[str, ...]:
    """The columns of a file by its first line, or by the file's name when that has neither three nor four."""
    return {3: BEIR, 4: TREC}.get(len(first.split()), BEIR if file.endswith(".tsv") else TREC)
