"""Data sets from tables, lists of objects and mappings in memory, checked by the same rules as a folder."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard_eval.common.tabular import Frame
from steelyard_eval.datasets.assembly import assemble
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import fault_message, read_folder

Rows: TypeAlias = "Frame | Iterable[Mapping[str, object]] | Mapping[str, str | Mapping[str, object]]"
"""Entries or queries: a table with a row for each, objects, or a mapping from ids to texts or objects."""
Judged: TypeAlias = "Frame | Mapping[str, Mapping[str, int] | Iterable[str]] | Iterable[Sequence[object]]"
"""Judgments: a table, query -> entry -> grade, query -> relevant entries, or triples of query, entry, grade."""
PARTS = ("corpus", "queries", "qrels", "vectors")
ABOUT = (
    *("name", "description", "licence", "as_of", "text_for_embedding", "report_split", "language"),
    *("embedder", "sampled", "groups", "pool", "provenance"),
)
COLUMNS = (("query", "query_id", "qid"), ("entry", "doc_id", "docno", "id"), ("grade", "relevance", "label"))
"""The names that the columns of a table of judgments may have: ours, those of ir_measures, those of PyTerrier."""
ELSEWHERE = {
    "corpus": {"id": ("docno", "doc_id", "_id"), "text": ("body",)},
    "queries": {"id": ("qid", "query_id", "_id"), "text": ("query",)},
}
"""What PyTerrier and ir_datasets call the ids and the texts."""


def load_dict(source: Mapping[str, Any]) -> Dataset:
    """Make a data set from a mapping with the keys `corpus`, `queries`, `qrels`, and the keys of dataset.json.

    `vectors` maps a model's name to two arrays, of the entries and of the queries, with one row for each. Raises
    ConfigError for unknown or missing keys, and DataError with all faults, whose line numbers count rows from 1.

    >>> load_dict({"corpus": {"m1": "rotate the keys"}, "queries": {"q1": "keys"}, "qrels": {"q1": ["m1"]}}).name
    'memory'
    """
    known = (*PARTS, *ABOUT)
    problems = [f"unknown key {quote(str(key))}{nearest(str(key), known)}" for key in source if key not in known]
    problems += [f"{key} is missing" for key in PARTS[:3] if key not in source]
    if problems:
        raise ConfigError(f"data set: {'; '.join(problems)}")
    about = {"name": "memory", **{key: source[key] for key in ABOUT if key in source}}
    texts = {
        "dataset.json": _json(about),
        **{f"{part}.jsonl": _lines(part, source[part]) for part in ELSEWHERE},
        "qrels.txt": "".join(f"{q} 0 {entry} {_grade(grade)}\n" for q, entry, grade in _triples(source["qrels"])),
    }
    files = {name: text.encode() for name, text in texts.items()}
    reader = MemoryReader(files, _arrays(source.get("vectors") or {}))
    report = assemble(reader, read_folder(reader), log=False)
    if report.dataset is None:
        raise DataError(fault_message("data set in memory", report.faults))
    return replace(report.dataset, in_memory=True)


class MemoryReader(FolderReader):
    """Reads a folder whose files are in memory: texts and arrays by name."""

    def __init__(self, files: Mapping[str, bytes], arrays: Mapping[str, NDArray[np.float16]]) -> None:
        super().__init__(Path("memory"))
        self._files = files
        self._arrays = arrays

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._files

    def content(self, name: str) -> bytes | None:
        """Return the bytes of a file."""
        raw = self._files[name]
        self.contents[name] = hashlib.sha256(raw).hexdigest()
        return raw

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of a file, or of an array's numbers."""
        raw = self._arrays[name].tobytes() if name in self._arrays else self._files[name]
        return hashlib.sha256(raw).hexdigest()

    def arrays(self) -> list[str]:
        """List the names of the arrays."""
        return sorted(self._arrays)

    def open_array(self, name: str) -> NDArray[Any]:
        """Return one array."""
        return self._arrays[name]


def _lines(part: str, rows: Rows) -> str:
    """Entries or queries as JSON Lines, without the missing values of a table, under our names.

    A name of another library counts if all rows have it and none has ours. Ids that are numbers become texts.
    """
    if hasattr(rows, "to_dict"):
        records = cast("Frame", rows).to_dict("records")
        objects = [{str(key): value for key, value in row.items() if not _is_missing(value)} for row in records]
    elif isinstance(rows, Mapping):
        texts = {id_: {} if _is_missing(row) else {"text": row} for id_, row in rows.items()}
        objects = [{"id": id_, **(row if isinstance(row, Mapping) else texts[id_])} for id_, row in rows.items()]
    else:
        objects = [dict(row) for row in rows]
    for ours, names in ELSEWHERE[part].items():
        theirs = [name for name in names if all(name in row and ours not in row for row in objects)]
        for row in objects if theirs else ():
            row[ours] = row[theirs[0]]
    for row in objects:
        id_ = row.get("id")
        row["id"] = str(id_) if isinstance(id_, int | np.integer) else id_
    return "".join(f"{_json(row)}\n" for row in objects)


def _is_missing(value: object) -> bool:
    return value is None or bool(np.isscalar(value) and value != value) or str(value) == "NaT"


def _triples(qrels: Judged) -> Iterable[Sequence[object]]:
    if hasattr(qrels, "columns"):
        frame = cast("Frame", qrels)
        return zip(*(frame[_column(frame, names)].tolist() for names in COLUMNS), strict=True)
    if isinstance(qrels, Mapping):
        return [
            (query, entry, grade)
            for query, rated in qrels.items()
            for entry, grade in (
                rated.items() if isinstance(rated, Mapping) else ((one, 1) for one in _listed(query, rated))
            )
        ]
    rows = [list(_listed("qrels", row)) for row in _listed("qrels", qrels)]
    if (odd := next((row for row in rows if len(row) != len(COLUMNS)), None)) is not None:
        raise ConfigError(f"qrels: {quote(odd)} is not a judgment; give query, entry and grade")
    return rows


def _listed(of: object, value: object) -> Iterable[Any]:
    """A list of ids or judgments; ConfigError for one text, which would be read letter by letter."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        where = "" if of == "qrels" else f" of query {quote(of)}"
        raise ConfigError(f"qrels{where}: {quote(value)} is not a list; put one id in brackets, as ['m1']")
    return value


def _grade(grade: object) -> str:
    """A grade as text: truth values as 1 and 0, numbers of numpy and others as the number that they are."""
    if isinstance(grade, bool | np.bool_):
        return str(int(grade))
    return str(float(grade)) if isinstance(grade, float | np.floating) else str(grade)


def _column(frame: Frame, names: Sequence[str]) -> str:
    columns = [name for name in names if name in frame.columns]
    if not columns:
        raise ConfigError(
            f"qrels: the table has no column {names[0]!r}; it has {', '.join(map(str, frame.columns))}"
        )
    return columns[0]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    """Dates in ISO form, numpy's numbers and arrays as Python's, anything else as its text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _arrays(vectors: Mapping[str, Sequence[ArrayLike]]) -> dict[str, NDArray[np.float16]]:
    arrays = {}
    for model, pair in vectors.items():
        if len(pair) != 2:
            raise ConfigError(f"vectors[{quote(model)}] must be two arrays: of the entries, and of the queries")
        try:
            for side, array in zip(("corpus", "queries"), pair, strict=True):
                arrays[f"{side}.{model}.f16.npy"] = np.asarray(array, dtype=np.float16)
        except (TypeError, ValueError):
            raise ConfigError(
                f"vectors[{quote(model)}] is not an array of numbers; give rows of equal length"
            ) from None
    return arrays
