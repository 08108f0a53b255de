"""An independent check of a comparison: ir_measures computes every metric of the given runs again."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steelyard.base.arrays import Floats
from steelyard.base.errors import DataError, shown
from steelyard.base.inputs import read_text
from steelyard_eval.common.documents.results import VerificationRecord, VerifiedMetric
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.runs import Scored, best_first

TOLERANCE = 1e-9
"""The largest difference from a value of ir_measures that is accepted."""
Qrels = Mapping[str, Mapping[str, int]]


@contextmanager
def run_folder(runs: Path | None, verify: bool) -> Iterator[Path | None]:
    """Provide the folder for runs: the one requested, a temporary one for checking them, or none."""
    if runs is not None or not verify:
        yield runs
    else:
        with TemporaryDirectory(prefix="steelyard-") as folder:
            yield Path(folder)


def verify_runs(
    files: Mapping[str, Path],
    qrels: Qrels,
    values: Mapping[str, Mapping[str, Floats]],
    measures: Sequence[Measure],
    limit: int,
) -> VerificationRecord:
    """Compute the metrics of runs with ir_measures and compare them with ours, query by query.

    Parameters
    ----------
    files : label -> TREC run
        The file that a contender was read from, else the one that was written of its lists.
    qrels : query -> entry -> grade
        Exactly the judged queries of the comparison, in the order of `values`.
    values : label -> metric -> float64[Q]
        Our values.
    measures
        What is compared. RecallAny and RecallAll are not measures of ir_measures and are not checked.
    limit : int
        The places that are measured.

    Returns
    -------
    dict
        tool, tolerance, and metrics: a record each of metric, checked, largest_difference (None where it is
        not checked), and the label and query where that occurs (empty where nothing differs).
    """
    theirs = {measure: _theirs(measure) for measure in measures}
    known = {measure: public for measure, public in theirs.items() if public is not None}
    worst = {str(measure): (0.0, "", "") for measure in known}
    for label, path in files.items():
        for metric, query, difference in _differences(_lists(path, limit), qrels, values[label], known):
            # NaN on one side is a difference too, and compares as none.
            if not difference <= worst[metric][0]:
                worst[metric] = (difference, label, query)
    return {
        "tool": f"ir_measures {version('ir_measures')}",
        "tolerance": TOLERANCE,
        "metrics": [_record(str(measure), worst.get(str(measure))) for measure in measures],
    }


def refuse_differences(record: VerificationRecord) -> None:
    """Raise DataError when a checked value differs from that of ir_measures by more than the tolerance."""
    wrong = [
        f"{row['metric']} of {row['label']} at query {shown(row['query'])} by {largest:.3g}"
        for row in record["metrics"]
        if (largest := row["largest_difference"]) is not None and not largest <= record["tolerance"]
    ]
    if wrong:
        raise DataError(
            f"{record['tool']} has other values on the same runs: {'; '.join(wrong)}; "
            "do not use this comparison, and report it with the data set"
        )


def _theirs(measure: Measure) -> Any:  # noqa: ANN401 -- ir_measures is untyped
    """The measure of this name in ir_measures, or None."""
    import ir_measures

    family = getattr(ir_measures, measure.family, None)
    if family is None:
        return None
    if sys.version_info < (3, 14):
        return ir_measures.parse_measure(str(measure))
    return family if measure.cutoff is None else family @ measure.cutoff  # its parser needs ast.Num


def _differences(
    lists: Mapping[str, list[Scored]], qrels: Qrels, values: Mapping[str, Floats], known: Mapping[Measure, Any]
) -> Iterator[tuple[str, str, float]]:
    """Metric, query and absolute difference of every value that ir_measures has of one run."""
    import ir_measures

    places = {query: place for place, query in enumerate(qrels)}
    names = {str(public): str(measure) for measure, public in known.items()}
    for by_places in (False, True):
        chosen = [public for measure, public in known.items() if _orders_otherwise(measure) == by_places]
        for result in ir_measures.iter_calc(chosen, _rows(qrels), _run(lists, by_places)):
            metric, query = names[str(result.measure)], result.query_id
            yield metric, query, abs(float(result.value) - float(values[metric][places[query]]))


def _orders_otherwise(measure: Measure) -> bool:
    """Whether ir_measures does not ask trec_eval for it, and so orders equal scores by ascending id."""
    return measure.family == "Judged" or (measure.family == "RR" and measure.cutoff is not None)


def _run(lists: Mapping[str, list[Scored]], by_places: bool) -> list[Any]:
    """A run with the scores of its file, or with scores that fall from place to place."""
    import ir_measures

    return [
        ir_measures.ScoredDoc(query, entry, -float(place) if by_places else score)
        for query, scored in lists.items()
        for place, (entry, score) in enumerate(scored)
    ]


def _lists(path: Path, limit: int) -> dict[str, list[Scored]]:
    """The first places of every list of a run, as ir_measures reads its file."""
    import ir_measures

    read: Any = ir_measures.read_trec_run
    lists: dict[str, list[Scored]] = {}
    for query, entry, score in read(io.StringIO(read_text(path))):
        lists.setdefault(query, []).append((entry, score))
    return {query: best_first(scored)[:limit] for query, scored in lists.items()}


def _rows(qrels: Qrels) -> Iterable[Any]:
    import ir_measures

    return [ir_measures.Qrel(query, entry, grade) for query, row in qrels.items() for entry, grade in row.items()]


def _record(metric: str, found: tuple[float, str, str] | None) -> VerifiedMetric:
    difference, label, query = found or (None, "", "")
    checked = found is not None
    return {
        "metric": metric,
        "checked": checked,
        "largest_difference": difference,
        "label": label,
        "query": query,
    }
