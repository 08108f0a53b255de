"""Data sets from tables, lists of objects and mappings in memory, checked by the same rules as a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import fault_message, read_folder
from steelyard_eval.datasets.parts import assemble

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, object]] | Mapping[str, str | Mapping[str, object]]"
"""Entries or queries: a table with a row for each, objects, or a mapping from ids to texts or objects."""
Judged: TypeAlias = "pd.DataFrame | Mapping[str, Mapping[str, int] | Iterable[str]] | Iterable[Sequence[object]]"
"""Judgments: a table, query -> entry -> grade, query -> relevant entries, or triples of query, entry, grade."""
PARTS = ("corpus", "queries", "qrels", "vectors")
ABOUT = (
    *("name", "description", "licence", "as_of", "text_for_embedding", "report_split"),
    *("embedder", "sampled", "pool", "provenance"),
)
COLUMNS = (("query", "query_id", "qid"), ("entry", "doc_id", "docno", "id"), ("grade", "relevance", "label"))
"""The names that the columns of a table of judgments may have: ours, those of ir_measures, those of PyTerrier."""
IDS = {"corpus": ("docno", "doc_id", "_id"), "queries": ("qid", "query_id", "_id")}
"""What the column of ids is called elsewhere."""
TEXTS = {"corpus": "body", "queries": "query"}
"""What the column of texts is called elsewhere."""


def load_dict(source: Mapping[str, Any]) -> Dataset:
    """Make a data set from a mapping with the keys `corpus`, `queries`, `qrels`, and the keys of dataset.json.

    `vectors` maps a model's name to two arrays, of the entries and of the queries, with one row for each. Raises
    ConfigError for unknown or missing keys, and DataError with all faults, whose line numbers count rows from 1.

    >>> load_dict({"corpus": {"m1": "rotate the keys"}, "queries": {"q1": "keys"}, "qrels": {"q1": ["m1"]}}).name
    'memory'
    """
    known = (*PARTS, *ABOUT)
    problems = [f"unknown key {shown(str(key))}{nearest(str(key), known)}" for key in source if key not in known]
    problems += [f"{key} is missing" for key in PARTS[:3] if key not in source]
    if problems:
        raise ConfigError(f"data set: {'; '.join(problems)}")
    about = {"name": "memory", **{key: source[key] for key in ABOUT if key in source}}
    texts = {
        "dataset.json": _json(about),
        **{f"{part}.jsonl": _lines(_named(part, _objects(source[part]))) for part in IDS},
        "qrels.txt": "".join(
            f"{query} 0 {entry} {grade}\n" for query, entry, grade in _judgments(source["qrels"])
        ),
    }
    reader = MemoryReader(
        {name: text.encode() for name, text in texts.items()}, _arrays(source.get("vectors") or {})
    )
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

    def find(self, name: str, required: bool = True) -> str | None:
        """Return the name if there is such a file."""
        return name if name in self._files else None

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


def _objects(rows: Rows) -> list[Mapping[str, object]]:
    """Entries or queries as JSON objects, without the missing values of a table."""
    if hasattr(rows, "to_dict"):
        frame = cast("pd.DataFrame", rows)
        return [{str(k): v for k, v in row.items() if not _is_open(v)} for row in frame.to_dict("records")]
    if isinstance(rows, Mapping):
        return [{"id": id_, **_object(row)} for id_, row in rows.items()]
    return list(rows)


def _object(row: object) -> Mapping[str, object]:
    """An entry or a query of a mapping; what is missing has no text, which is a fault."""
    if isinstance(row, Mapping):
        return row
    return {} if _is_open(row) else {"text": row}


def _named(part: str, rows: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Rows under our names, where all of them have those of PyTerrier or ir_datasets instead."""
    names = dict.fromkeys(IDS[part], "id") | {TEXTS[part]: "text"}
    theirs = {
        name: ours for name, ours in names.items() if rows and all(name in row and ours not in row for row in rows)
    }
    once = {ours: name for name, ours in reversed(theirs.items())}  # the first of several names
    return [{**row, **{ours: row[name] for ours, name in once.items()}} for row in rows] if once else rows


def _is_open(value: object) -> bool:
    """Whether a value is missing in a table: None, NaN or NaT."""
    return value is None or bool(np.isscalar(value) and value != value) or str(value) == "NaT"


def _judgments(qrels: Judged) -> list[tuple[str, str, str]]:
    if hasattr(qrels, "columns"):
        frame = cast("pd.DataFrame", qrels)
        rows: Iterable[Sequence[object]] = zip(
            *(frame[_column(frame, names)].tolist() for names in COLUMNS), strict=True
        )
    elif isinstance(qrels, Mapping):
        rows = [(query, entry, grade) for query, rated in qrels.items() for entry, grade in _rated(query, rated)]
    else:
        rows = map(_triple, _listed("qrels", qrels))
    return [(str(query), str(entry), _grade(grade)) for query, entry, grade in rows]


def _rated(query: object, rated: object) -> Iterable[tuple[object, object]]:
    """Entries with their grades, of a mapping or of a list of relevant ones."""
    return rated.items() if isinstance(rated, Mapping) else ((entry, 1) for entry in _listed(query, rated))


def _triple(row: object) -> Sequence[object]:
    values = list(_listed("qrels", row))
    if len(values) != len(COLUMNS):
        raise ConfigError(f"qrels: {shown(row)} is not a judgment; give query, entry and grade")
    return values


def _listed(of: object, value: object) -> Iterable[Any]:
    """A list of ids or judgments; ConfigError for one text, which would be read letter by letter."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        where = "" if of == "qrels" else f" of query {shown(of)}"
        raise ConfigError(f"qrels{where}: {shown(value)} is not a list; put one id in brackets, as ['m1']")
    return value


def _grade(value: object) -> str:
    """A grade as text: truth values as 1 and 0, numbers of numpy and others as the number that they are."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    return str(float(value)) if isinstance(value, float | np.floating) else str(value)


def _column(frame: pd.DataFrame, names: Sequence[str]) -> str:
    columns = [name for name in names if name in frame.columns]
    if not columns:
        raise ConfigError(
            f"qrels: the table has no column {names[0]!r}; it has {', '.join(map(str, frame.columns))}"
        )
    return columns[0]


def _lines(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(f"{_json({**row, 'id': _id(row.get('id'))})}\n" for row in rows)


def _id(value: object) -> object:
    """The id as text, because tables may have numbers as ids."""
    return str(value) if isinstance(value, int | np.integer) else value


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
            raise ConfigError(f"vectors[{shown(model)}] must be two arrays: of the entries, and of the queries")
        for side, array in zip(("corpus", "queries"), pair, strict=True):
            arrays[f"{side}.{model}.f16.npy"] = _half(model, array)
    return arrays


def _half(model: str, array: ArrayLike) -> NDArray[np.float16]:
    try:
        return np.asarray(array, dtype=np.float16)
    except (TypeError, ValueError):
        raise ConfigError(
            f"vectors[{shown(model)}] is not an array of numbers; give rows of equal length"
        ) from None
