"""Labels: graded judgments in TREC's columns or BEIR's, how their queries were drawn, whose lists were judged."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from steelyard.base.errors import quote, visible
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.corpus_and_queries import JsonLines
from steelyard_eval.datasets.file_reader import FolderReader

SAMPLINGS = {
    "all": "all there were",
    "random": "drawn at random",
    "log": "drawn from a log",
    "failing": "chosen for failing",
    "duel": "chosen because contenders disagree",
    "by hand": "chosen by hand",
    "unknown": "origin unknown",
}
Sampled = Annotated[str, Meta(pattern=rf"\A({'|'.join(SAMPLINGS)})\Z")]
RANDOM_SAMPLES = frozenset({"all", "random", "log"})  # under these the labelled queries stand for the others
UNKNOWN_SAMPLES = frozenset({"", "unknown"})  # under these they may: only traces in the labels speak against it
COMPLETE = "complete"
_LACKING = {
    "sampled": f"how the labelled queries were drawn (sampled: {', '.join([*SAMPLINGS][:-1])})",
    "pool": "which results were labelled (pool: complete, or the contenders)",
}
_ASSUMED = {"sampled": "random", "pool": "labelled alike"}
MAX_NAMED_CONTENDERS = 3


class JudgedPool(Struct, frozen=True, forbid_unknown_fields=True):
    """What was judged: the first `depth` of every contender's list; of no contender: every entry that matters."""

    contenders: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    depth: int = 0

    def __post_init__(self) -> None:
        if (self.depth > 0) != bool(self.contenders):
            raise ValueError("contenders have a depth")

    @property
    def complete(self) -> bool:
        """Whether what has no grade is known not to be relevant."""
        return not self.contenders

    def to_json(self) -> str | dict[str, object]:
        """As dataset.json writes it."""
        return COMPLETE if self.complete else {"contenders": list(self.contenders), "depth": self.depth}

    def __str__(self) -> str:
        return "every entry that matters" if self.complete else f"the first {self.depth} of {self.named}"

    @property
    def named(self) -> str:
        """The contenders, escaped; of many the first, and how many more."""
        more = len(self.contenders) - MAX_NAMED_CONTENDERS
        names = ", ".join(visible(name)[:60] for name in self.contenders[:MAX_NAMED_CONTENDERS])
        return f"{names} and {more} more" if more > 0 else names


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Labels that came about in one way: how their queries were drawn, what was judged, and who judged.

    `labels` maps queries to the entries that were judged: a query counts as drawn so while all have labels.
    """

    sampled: Sampled
    labels: Mapping[str, Annotated[tuple[str, ...], Meta(min_length=1)]]
    pool: JudgedPool | None = None
    judge: str = ""

    def holds(self, query: str, labelled: Collection[str], entries: set[str]) -> bool:
        """Whether the labels of a query are those of this batch, and all of them that have an entry are there."""
        return query in self.labels and entries.intersection(self.labels[query]) <= set(labelled)

    def to_json(self) -> dict[str, object]:
        """As dataset.json writes it."""
        about = {key: value for key, value in sampling(self.sampled, self.pool).items() if value is not None}
        rows = {query: list(entries) for query, entries in sorted(self.labels.items())}
        return {**about, **({"judge": self.judge} if self.judge else {}), "labels": rows}


def with_batch(batches: Sequence[Batch], new: Batch) -> tuple[Batch, ...]:
    """Batches with a new one; queries that it names leave the others."""
    kept = [
        replace(one, labels={q: ids for q, ids in one.labels.items() if q not in new.labels}) for one in batches
    ]
    alike = [one for one in kept if (one.sampled, one.pool, one.judge) == (new.sampled, new.pool, new.judge)]
    joined = replace(new, labels={q: ids for one in (*alike, new) for q, ids in one.labels.items()})
    return (*(one for one in kept if one.labels and one not in alike), joined)


_NONE_OF, _NAME_ONE = "is none of {}", "Name one of them, or leave it out"
_KEYS: dict[str, tuple[Any, str, str]] = {
    "sampled": (Sampled, _NONE_OF.format(", ".join(SAMPLINGS)), _NAME_ONE),
    "groups": (Annotated[str, Meta(pattern=r"\Agiven\Z")], _NONE_OF.format("given"), _NAME_ONE),
    "pool": (
        JudgedPool,
        f'must be "{COMPLETE}", or an object of contenders (their names) and depth (from 1 on)',
        'Write it as {"contenders": ["bm25", "vector"], "depth": 10}',
    ),
    "provenance": (
        tuple[Batch, ...],
        "must be a list of objects of sampled, labels (queries and their entries), and pool and judge, if known",
        'Write it as [{"sampled": "random", "labels": {"q1": ["m1", "m2"]}}]',
    ),
}


def read_labels(reader: FolderReader, file: str, record: Mapping[str, object]) -> dict[str, Any]:
    """What dataset.json says of its labels, by key and as far as it says it; a fault for what is none."""
    found = {}
    for key, (kind, rule, remedy) in _KEYS.items():
        try:
            if (value := record.get(key)) is not None:
                found[key] = msgspec.convert(_spelled(value), kind)
        except msgspec.ValidationError:
            reader.fault(file, 0, key, quote(value), rule, remedy)
    return found


def _spelled(value: Any) -> Any:  # noqa: ANN401 -- JSON of any form
    """The same with every pool as an object: "complete" is one of nobody; any other has to name somebody."""
    if value == COMPLETE:
        return {"contenders": [], "depth": 0}
    if isinstance(value, list):
        return [_spelled(one) for one in value]
    if isinstance(value, dict) and "sampled" not in value and not value.get("contenders"):
        return {"contenders": [], "depth": 1}
    return value | {"pool": _spelled(value["pool"])} if isinstance(value, dict) and "pool" in value else value


def sampling(sampled: str, pool: JudgedPool | None) -> dict[str, object]:
    """What a data set says of its labels, as dataset.json writes it; null for what it leaves open."""
    return {"sampled": sampled or None, "pool": None if pool is None else pool.to_json()}


def in_words(sampled: str, pool: JudgedPool | None, provenance: Sequence[Batch] = ()) -> Iterator[str]:
    """The same as lines to read."""
    for batch in provenance:
        by = f" by {visible(batch.judge)}" if batch.judge else ""
        what = f", from {batch.pool}" if batch.pool else ""
        count = counted(len(batch.labels), "query", "queries")
        yield f"dataset.json says of {count}: {SAMPLINGS[batch.sampled]}, judged{by}{what} (provenance)"
    if sampled:
        yield f"dataset.json says how the labelled queries were drawn: {SAMPLINGS[sampled]} (sampled: {sampled})"
    if pool is not None:
        what = f"what was judged: {'pairs among ' if sampled == 'duel' else ''}{pool} (pool)"
        if pool.complete:
            what = "that an entry without a label is not relevant (pool: complete)"
        yield f"dataset.json says {what}"


def sampling_notice(sampled: str, pool: JudgedPool | None, provenance: Sequence[Batch] = ()) -> Iterator[str]:
    """A notice where the data set leaves either open; beside known provenance all other labels are chosen."""
    if provenance:
        return
    given = {"sampled": sampled, "pool": pool}
    lacking = [name for name in _LACKING if not given[name]]
    if lacking:
        said = " or ".join(_LACKING[name] for name in lacking)
        taken = " and as ".join(_ASSUMED[name] for name in lacking)
        yield f"dataset.json does not say {said}; they count as {taken}; add {' and '.join(lacking)} there"


GRADES: dict[int | None, int] = {-1: 0, 0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
"""Grades by the number that is written. TREC sets write -1 for "judged, not relevant"."""
COMMENT_SIGN = "#"
_WRITTEN_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?%?|[-+]?(nan|inf|infinity)", re.IGNORECASE)

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

        The first line determines whether the file has three or four columns; skips comments and a header of three.
        """
        named: set[str] = set()
        read = ((line, text.split()) for line, text in self.reader.lines(file) or [] if text is not None)
        lines = [(line, values) for line, values in read if not self._is_comment(values)]
        usual = BEIR if file.endswith(".tsv") else TREC
        columns = {3: BEIR, 4: TREC}.get(len(lines[0][1]) if lines else 0, usual)
        for line, values in lines:
            if len(values) != len(columns):
                text, rule = " ".join(values), f"must have {len(columns)} columns: {' '.join(columns)}"
                commas = text.count(",") >= len(BEIR) - 1 and len(values) == 1
                remedy = "Put blanks or tabs where it has commas" if commas else "Correct the line"
                self.reader.fault(file, line, "", quote(text), rule, remedy)
            elif line != lines[0][0] or not self._is_header(values):
                self._add(file, line, values[0], values[-2], values[-1])
                named.add(values[0])
        return named

    def _is_comment(self, values: list[str]) -> bool:
        """Whether a line begins as a comment does, and is no judgment of an id that begins so."""
        if not values[0].startswith(COMMENT_SIGN) or _holds(self.queries, values[0]):
            return False
        judges = len(values) in (len(BEIR), len(TREC)) and read_integer(values[-1]) is not None
        if not judges or values[0] == COMMENT_SIGN:
            return True
        return self.entries is not None and not _holds(self.entries, values[-2])

    def _is_header(self, values: list[str]) -> bool:
        """Whether the first line heads columns: three words, none of them a number or an id that is known."""
        ids = _holds(self.queries, values[0]) or _holds(self.entries, values[1])
        return len(values) == len(BEIR) and not ids and not _WRITTEN_NUMBER.fullmatch(values[-1])

    def _add(self, file: str, line: int, query: str, entry: str, written: str) -> None:
        for name, id_, table in (("query", query, self.queries), ("entry", entry, self.entries)):
            # When no line of the table has an id, that is the fault to report, and not every judgment.
            if table is not None and table.lines and id_ not in table.lines:
                rule = f"is the id of no {name}"
                self.reader.fault(file, line, name, quote(id_), rule, "Add it, or remove the line")
        if (grade := GRADES.get(read_integer(written))) is None:
            rule = "must be an integer in 0..4, or -1 for not relevant"
            self.reader.fault(file, line, "grade", quote(written), rule, "Map the grades onto 0..4")
            return
        first = self.grades.setdefault(query, {}).setdefault(entry, grade)
        if first != grade:
            rule = f"contradicts grade {first} given before for query {quote(query)}, entry {quote(entry)}"
            self.reader.fault(file, line, "grade", quote(written), rule, "Keep one of the judgments")


def _holds(table: JsonLines[Entry] | JsonLines[Query] | None, id_: str) -> bool:
    return table is not None and id_ in table.lines


@lru_cache  # of few grades
def read_integer(written: str) -> int | None:
    """The whole number that a text writes, also as 1.0 or 1e0; None for a fraction and for what is no number.

    >>> read_integer("1.0"), read_integer("-1"), read_integer("0.5"), read_integer("nan")
    (1, -1, None, None)
    """
    if not written.isascii() or "_" in written:
        return None
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
