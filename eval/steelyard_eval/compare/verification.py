"""An independent check of a comparison: ir_measures computes every metric of the given runs again."""

import io
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ir_measures

from steelyard.base.arrays import Floats
from steelyard.base.errors import DataError, quote
from steelyard.base.files import read_text
from steelyard.memory.query import Query
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists_and_latency import Made
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.trec_runs import Scored, best_first, write_run
from steelyard_eval.result.structs import Cell, Result, Table

TOLERANCE = 1e-9
COLUMNS = ["measure", "largest", "largest_of", "at_query"]
Qrels = Mapping[str, Mapping[str, int]]


def verified(
    made: Sequence[Made],
    dataset: Dataset,
    queries: Sequence[Query],
    values: Mapping[str, Mapping[str, Floats]],
    measures: Sequence[Measure],
    limit: int,
    runs: str | Path | None,
    verify: bool,
) -> list[Table]:
    """Write TREC runs to the folder `runs`, if any; with `verify` check every metric of them by ir_measures.

    The table has a row for each metric: the largest difference of `values` (label -> metric -> float64[Q]) from
    those of ir_measures over the first `limit` places, and the label and query where it occurs. What it lacks
    (RecallAny, RecallAll, budgets of tokens) is not checked and has None, as has the place where nothing differs.
    """
    if runs is None:
        with TemporaryDirectory(prefix="steelyard-") as folder:
            return verified(made, dataset, queries, values, measures, limit, folder, verify)
    files = _write_runs(Path(runs), made)
    if not (verify and queries):
        return []
    given = {one.label: one.contender.file for one in made if isinstance(one.contender, ListContender)}
    files |= {label: file for label, file in given.items() if file}
    qrels = {query.id: dataset.qrels[query.id] for query in queries}
    theirs = {measure: _of_ir_measures(measure) for measure in measures}
    known = {measure: public for measure, public in theirs.items() if public is not None}
    worst: dict[str, tuple[float, str | None, str | None]] = {str(measure): (0.0, None, None) for measure in known}
    for label, path in files.items():
        for metric, query, difference in _differences(_first_places(path, limit), qrels, values[label], known):
            # NaN on one side is a difference too, and compares as none.
            if not difference <= worst[metric][0]:
                worst[metric] = (difference, label, query)
    nothing = (None, None, None)
    rows: list[list[Cell]] = [[str(measure), *worst.get(str(measure), nothing)] for measure in measures]
    return [Table("verification", COLUMNS, rows, {"tool": f"ir_measures {version('ir_measures')}"})]


def _write_runs(folder: Path, made: Sequence[Made]) -> dict[str, Path]:
    tags = [one.tag for one in made]
    files = {}
    for i, one in enumerate(made):
        name = f"{tags[i]}.{tags[:i].count(tags[i]) + 1}" if tags.count(tags[i]) > 1 else tags[i]
        path = files[one.label] = folder / f"{name}.run"
        lists = one.ranked
        write_run(path, lists.queries, lists.offsets, lists.entry, lists.entries, name)
    return files


def refuse_differences(result: Result) -> None:
    """Raise DataError when a checked value differs from that of ir_measures by more than the tolerance."""
    table = next(table for table in result.tables if table.key == "verification")
    wrong = [
        f"{metric} of {label} at query {quote(str(query))} by {largest:.3g}"
        for metric, largest, label, query in table.rows
        if isinstance(largest, float) and not largest <= TOLERANCE
    ]
    if wrong:
        raise DataError(
            f"{table.facts['tool']} computes other values from the same runs: {'; '.join(wrong)}; "
            "do not use this comparison, and report it with the data set"
        )


def _of_ir_measures(measure: Measure) -> Any:  # noqa: ANN401 -- ir_measures is untyped
    family = None if measure.tokens else getattr(ir_measures, measure.family, None)
    # Its own parser of names needs ast.Num, which Python 3.14 lacks.
    return family if family is None or measure.cutoff is None else family @ measure.cutoff


def _differences(
    lists: Mapping[str, list[Scored]], qrels: Qrels, values: Mapping[str, Floats], known: Mapping[Measure, Any]
) -> Iterator[tuple[str, str, float]]:
    """Metric, query and absolute difference of every value that ir_measures has of one run.

    Where ir_measures does not ask trec_eval for a metric it orders equal scores by ascending id; a run for those
    has scores that fall from place to place.
    """
    grades = [ir_measures.Qrel(query, *pair) for query, row in qrels.items() for pair in row.items()]
    places = {query: place for place, query in enumerate(qrels)}
    names = {str(public): str(measure) for measure, public in known.items()}
    for by_places in (False, True):
        run = [
            ir_measures.ScoredDoc(query, entry, -float(place) if by_places else score)
            for query, scored in lists.items()
            for place, (entry, score) in enumerate(scored)
        ]
        chosen = [
            public
            for measure, public in known.items()
            if by_places == (measure.family == "Judged" or (measure.family == "RR" and measure.cutoff is not None))
        ]
        for result in ir_measures.iter_calc(chosen, grades, run):
            metric, query = names[str(result.measure)], result.query_id
            if result.measure.NAME == "Judged" and query not in lists:
                continue  # it has 0 for the share of a list that is empty
            yield metric, query, abs(float(result.value) - float(values[metric][places[query]]))


def _first_places(path: Path, limit: int) -> dict[str, list[Scored]]:
    read: Any = ir_measures.read_trec_run
    lists: dict[str, list[Scored]] = {}
    for query, entry, score in read(io.StringIO(read_text(path))):
        lists.setdefault(query, []).append((entry, score))
    return {query: best_first(scored)[:limit] for query, scored in lists.items()}
