"""Runs in TREC form, and trec_eval's own opinion of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import PATH_WIDTH, ConfigError, DataError, shown
from steelyard.files import write_text
from steelyard.table import Indices, Ints
from steelyard_eval.measures.metrics import Floats, Judgments, Measure, evaluate

Scored = tuple[str, float]
"""An entry with its score."""
COLUMNS = ("query", "Q0", "entry", "rank", "score", "tag")
SHOWN = 3
"""Faulty lines that a message names."""


@dataclass(frozen=True)
class Ranked:
    """Ranked lists of Q queries, best first, as CSR: `entry` indexes `entries`, the ids sorted by bytes."""

    queries: tuple[str, ...]
    entries: tuple[str, ...]
    offsets: Indices
    entry: Ints

    @classmethod
    def of(cls, queries: Sequence[str], lists: Sequence[Sequence[str]]) -> Ranked:
        """The lists of ids, one a query."""
        entries = sorted({id_ for own in lists for id_ in own}, key=str.encode)
        code = {id_: at for at, id_ in enumerate(entries)}
        flat = np.array([code[id_] for own in lists for id_ in own], dtype=np.int32)
        return cls(tuple(queries), tuple(entries), np.cumsum([0, *map(len, lists)], dtype=np.int64), flat)

    def metrics(
        self, qrels: Mapping[str, Mapping[str, int]], measures: Iterable[Measure]
    ) -> dict[Measure, Floats]:
        """float64[Q] for every measure."""
        return evaluate(self.offsets, self.entry, Judgments.of(qrels, self.queries, self.entries), measures)


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
    """Write `run_lines` to `path` (UTF-8), all or nothing: an old file stays until the new one is complete.

    Raises
    ------
    DataError
        An id of the run, or the tag, is empty or holds white space, which the format cannot carry.
    MachineError
        The folder cannot be written, or the disk is full.
    """
    names = {tag, *queries, *(entries[i] for i in np.unique(entry).tolist())}
    bad = sorted(name for name in names if name.split() != [name])
    if bad:
        listed = ", ".join(shown(name) for name in bad[:10])
        rule = f"a TREC run holds no empty ids and no white space in ids: {len(bad)} do not fit"
        raise DataError(f"{path}: {rule}, {listed}. Rename them")
    write_text(path, "".join(run_lines(queries, offsets, entry, entries, tag)))


def read_run(path: Path) -> dict[str, list[Scored]]:
    """Read a TREC run: query -> (entry, score), in the order in which trec_eval reads it (`best_first`).

    Raises
    ------
    ConfigError
        The file cannot be read.
    DataError
        It has lines that are no part of a run; the first ones are named, with the rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot read the run {shown(str(path), PATH_WIDTH)}: {reason}; check its path"
        ) from None
    lists: dict[str, dict[str, float]] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (fault := _add_line(lists, line.split())):
            faults.append(f"line {number}: {shown(line.strip())} {fault}")
    if faults:
        more = f"; {len(faults)} such lines in all" if len(faults) > SHOWN else ""
        raise DataError(
            f"run {shown(str(path), PATH_WIDTH)}: {'; '.join(faults[:SHOWN])}{more}. Write the run again"
        )
    return {query: best_first(list(own.items())) for query, own in lists.items()}


def _add_line(lists: dict[str, dict[str, float]], fields: list[str]) -> str:
    """Add one line of a run; what is wrong with it, else an empty text."""
    if len(fields) != len(COLUMNS):
        return f"must have {len(COLUMNS)} columns: {' '.join(COLUMNS)}"
    query, _, entry, _, written, _ = fields
    try:
        score = float(written)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        return "must have a finite number as its score"
    own = lists.setdefault(query, {})
    if entry in own:
        return "names an entry that the query has already"
    own[entry] = score
    return ""


def best_first(results: list[Scored]) -> list[Scored]:
    """Results as trec_eval orders them: by score in float32 descending, then by id descending.

    >>> best_first([("a", 1.0), ("c", 2.0), ("b", 1.0)])
    [('c', 2.0), ('b', 1.0), ('a', 1.0)]
    """
    return sorted(results, key=lambda one: (np.float32(one[1]), one[0].encode()), reverse=True)


def oracle(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    measures: Iterable[Measure],
) -> dict[Measure, dict[str, float]]:
    """Return trec_eval's own values (through pytrec_eval), measure by measure, query by query.

    Covers every query of `qrels` that has judgments; 0 where the run does not answer it. Judged and
    Recall* are not in trec_eval and are left out. trec_eval orders a run by float32 score, then by id
    descending.
    """
    import pytrec_eval  # it is needed only where values are checked

    names = {measure: name for measure in measures if (name := measure.trec_name)}
    # Grades below 0 hang or crash pytrec_eval; trec_eval gives them no gain either.
    clean = {q: {e: max(grade, 0) for e, grade in row.items()} for q, row in qrels.items() if row}
    found = pytrec_eval.RelevanceEvaluator(clean, set(names.values())).evaluate(
        {query: dict(scores) for query, scores in run.items()}
    )
    return {m: {q: _read(m, found.get(q, {}).get(name, 0.0)) for q in clean} for m, name in names.items()}


def _read(measure: Measure, value: float) -> float:
    """Return the value; RR is cut here, since trec_eval has no recip_rank at k: beyond k it is below 1/k."""
    late = measure.family == "RR" and measure.cutoff is not None and value * measure.cutoff < 1 - 1e-9
    return 0.0 if late else float(value)
