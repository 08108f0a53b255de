"""Reads recorded embeddings: float16 .npy files, memory-mapped, with one row for each line of their table."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.datasets.corpus_and_queries import JsonLines
from steelyard_eval.datasets.file_reader import FolderReader

Matrix = NDArray[np.float16]

_NAME = re.compile(r"(corpus|queries)(?:\.(l0|l1|l2))?\.([\w.-]+)\.f16\.npy")
_BLOCK = 65536  # rows checked at a time, so that a large file never fills the memory


@dataclass(frozen=True, slots=True)
class Vectors:
    """Corpus vectors by (model, layer), query vectors by model, one hash over the files.

    `ignored` lists .npy files whose names do not follow the format; `partial` has how many entries have no vector
    of their text, by model.
    """

    corpus: dict[tuple[str, str], Matrix]
    queries: dict[str, Matrix]
    sha256: str
    ignored: tuple[str, ...]
    partial: dict[str, int]


def read_vectors(
    reader: FolderReader, entries: JsonLines[Entry] | None, queries: JsonLines[Query] | None, imported: bool
) -> Vectors:
    """Open every vector file; the rows of a table that is None are not checked.

    In what was imported, a row of zeros stands for an entry that its store has no vector of; else it is a fault.
    """
    rows = {"corpus": entries.rows if entries else None, "queries": queries.rows if queries else None}
    files = reader.arrays()
    corpus: dict[tuple[str, str], Matrix] = {}
    query: dict[str, Matrix] = {}
    partial: dict[str, int] = {}
    ignored = []
    for file in files:
        named = _NAME.fullmatch(file)
        if named is None or (named[1] == "queries" and named[2]):
            ignored.append(file)
            continue
        full = named[1] == "queries" or not (imported or named[2])
        matrix, zeros = _read_matrix(reader, file, rows[named[1]], full)
        if zeros and not named[2]:
            partial[named[3]] = zeros
        if matrix is not None and named[1] == "corpus":
            corpus[named[3], named[2] or "text"] = matrix
        elif matrix is not None:
            query[named[3]] = matrix
    _check_dimensions(reader, corpus, query)
    used = [file for file in files if file not in ignored]
    return Vectors(corpus, query, _hash(reader, used), tuple(ignored), partial)


def _hash(reader: FolderReader, files: list[str]) -> str:
    if not files:
        return ""
    return hashlib.sha256("".join(f"{f} {reader.digest(f)}\n" for f in files).encode()).hexdigest()


def _read_matrix(reader: FolderReader, file: str, rows: int | None, full: bool) -> tuple[Matrix | None, int]:
    """Open one file, and count its rows of zeros; with `full` every row must be a vector, else one."""
    if reader.digest(file) is None:
        return None, 0
    try:
        matrix = reader.open_array(file)
    except Exception as error:  # a broken header makes numpy raise almost anything
        rule = f"is not a whole .npy file of numbers ({shown(str(error), 120)})"
        reader.fault(file, 0, "", "", rule, "Write it with numpy.save(array, allow_pickle=False)")
        return None, 0
    if not _has_shape(reader, file, matrix, rows):
        return None, 0
    return matrix, _check_rows(reader, file, matrix, full)


def _has_shape(reader: FolderReader, file: str, matrix: NDArray[np.generic], rows: int | None) -> bool:
    before = len(reader.faults)
    if matrix.dtype != np.float16:
        reader.fault(file, 0, "dtype", str(matrix.dtype), "must be float16", "Save array.astype('float16')")
    if matrix.ndim != 2:
        shape = str(matrix.shape)
        reader.fault(file, 0, "shape", shape, "must have two dimensions", "Save one vector a row")
    elif rows is not None and len(matrix) != rows:
        table = file.split(".")[0]
        rule = f"must be {rows}, the lines of {table}"
        reader.fault(file, 0, "rows", str(len(matrix)), rule, "Record the vectors again, in file order")
    return len(reader.faults) == before


def _check_rows(reader: FolderReader, file: str, matrix: Matrix, full: bool) -> int:
    """Count the rows of zeros, in whose place there is no vector.

    Record a fault for the first row, counted from 0, that is not finite, and for the first of zeros where `full`
    allows none, or where there is nothing else.
    """
    broken, zero = [], []
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        broken += [start + int(i) for i in np.flatnonzero(~np.isfinite(block).all(axis=1))]
        zero += [start + int(i) for i in np.flatnonzero(~block.any(axis=1))]
    if broken:
        rule = f"contains NaN or infinity ({len(broken)} such rows, counted from 0)"
        reader.fault(file, 0, f"row {broken[0]}", "", rule, "Embed its text again")
    if zero and (full or len(zero) == len(matrix)):
        rule = f"is all zeros ({len(zero)} such rows, counted from 0)"
        reader.fault(file, 0, f"row {zero[0]}", "", rule, "Embed its text again")
    return len(zero)


def _check_dimensions(
    reader: FolderReader, corpus: dict[tuple[str, str], Matrix], queries: dict[str, Matrix]
) -> None:
    for (model, layer), matrix in corpus.items():
        other = queries.get(model)
        if other is not None and other.shape[1] != matrix.shape[1]:
            file = f"corpus.{model}.f16.npy" if layer == "text" else f"corpus.{layer}.{model}.f16.npy"
            rule = f"differs from {other.shape[1]} in queries.{model}.f16.npy"
            reader.fault(file, 0, "dimension", str(matrix.shape[1]), rule, "Embed both with the same model")
