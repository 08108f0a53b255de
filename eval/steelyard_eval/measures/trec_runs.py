"""Reads and writes TREC runs."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, quote
from steelyard.base.files import read_text, write_text

Scored = tuple[str, float]  # an entry with its score
COLUMNS = ("query", "Q0", "entry", "rank", "score", "tag")
SHOWN = 3  # the number of faulty lines that a message shows


def run_lines(
    queries: Sequence[str], offsets: Indices, entry: NDArray[np.integer], entries: Sequence[str], tag: str
) -> Iterator[str]:
    r"""Yield the lines of a TREC run: query Q0 entry rank score tag.

    The score of rank r in a list of n is n - r + 1, so that no evaluator can reorder it (trec_eval reads
    scores as float32 and breaks ties by id); exact in float32 for lists up to 2**24.

    >>> list(run_lines(["q"], np.array([0, 2]), np.array([1, 0]), ["a", "b"], "mine"))
    ['q Q0 b 1 2 mine\n', 'q Q0 a 2 1 mine\n']
    """
    for query, start, end in zip(queries, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for place, i in enumerate(entry[start:end].tolist()):
            yield f"{query} Q0 {entries[i]} {place + 1} {end - start - place} {tag}\n"


def write_run(
    path: Path,
    queries: Sequence[str],
    offsets: Indices,
    entry: NDArray[np.integer],
    entries: Sequence[str],
    tag: str,
) -> None:
    """Write `run_lines` to `path` (UTF-8); an old file stays until the new one is complete.

    Raises DataError when an id of the run, or the tag, is empty or contains white space, which the format cannot
    represent, and MachineError when the folder cannot be written, or the disk is full.
    """
    names = {tag, *queries, *(entries[i] for i in np.unique(entry).tolist())}
    bad = sorted(name for name in names if name.split() != [name])
    if bad:
        listed = ", ".join(quote(name) for name in bad[:10])
        rule = f"ids in a TREC run must not be empty or contain white space, and {len(bad)} do not fit"
        raise DataError(f"{path}: {rule}, {listed}. Rename them")
    write_text(path, "".join(run_lines(queries, offsets, entry, entries, tag)))


def read_run(path: Path) -> dict[str, list[Scored]]:
    """Read a TREC run: query -> (entry, score), in the order in which trec_eval reads it (`best_first`).

    Raises ConfigError when the file cannot be read, and DataError when lines do not follow the format; the message
    shows the first ones with the rule.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot read the run {quote(str(path), PATH_WIDTH)}: {reason}; check its path"
        ) from None
    lists: dict[str, dict[str, float]] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (fault := _add_line(lists, line.split())):
            faults.append(f"line {number}: {quote(line.strip())} {fault}")
    if faults:
        more = f"; {len(faults)} such lines in all" if len(faults) > SHOWN else ""
        raise DataError(
            f"run {quote(str(path), PATH_WIDTH)}: {'; '.join(faults[:SHOWN])}{more}. Write the run again"
        )
    return {query: best_first(list(scores.items())) for query, scores in lists.items()}


def _add_line(lists: dict[str, dict[str, float]], fields: list[str]) -> str:
    """Add one line of a run; return what is wrong with it, or an empty text."""
    if len(fields) != len(COLUMNS):
        return f"must have {len(COLUMNS)} columns: {' '.join(COLUMNS)}"
    query, _, entry, _, written, _ = fields
    try:
        score = float(written)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        return "must have a finite number as its score"
    scores = lists.setdefault(query, {})
    if entry in scores:
        return "names an entry that the query has already"
    scores[entry] = score
    return ""


def best_first(results: list[Scored]) -> list[Scored]:
    """Sort results like trec_eval: by score in float32 descending, then by id descending.

    >>> best_first([("a", 1.0), ("c", 2.0), ("b", 1.0)])
    [('c', 2.0), ('b', 1.0), ('a', 1.0)]
    """
    with np.errstate(over="ignore"):  # beyond float32 a score is infinite, there as here
        return sorted(results, key=lambda result: (np.float32(result[1]), result[0].encode()), reverse=True)
