"""Compares configurations on the same queries, with intervals, tests, latency and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import cast

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, together
from steelyard_eval.common.configurations import Named, separate
from steelyard_eval.compare.arena import Arena, ArenaRow
from steelyard_eval.compare.comparison_document import ComparisonCase, document
from steelyard_eval.compare.contender_selection import usual, with_baseline
from steelyard_eval.compare.contenders import Given, GivenMany, distinct, read, read_all
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.result import Comparison
from steelyard_eval.compare.silence import silences
from steelyard_eval.compare.stale_lists import stale_lists
from steelyard_eval.compare.verification import run_folder, verify_runs
from steelyard_eval.datasets import LOGGED, Dataset, as_dataset
from steelyard_eval.measures.metrics import Measure, parse_measures
from steelyard_eval.measures.runs import Ranked, write_run
from steelyard_eval.recording.select import open_recording, recorded_lists
from steelyard_eval.recording.workspace import Workspace, judged

METRICS = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")
Source = Dataset | str | Path
"""A data set, or the folder it is in."""


def compare(
    source: Source,
    contenders: GivenMany | None = None,
    *,
    baseline: Given | int | None = None,
    metrics: str | Sequence[str] = METRICS,
    split: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
    jobs: int | Executor = 1,
    recording: str | Path | None = None,
    runs: str | Path | None = None,
    verify: bool = False,
    seed: int = 0,
    timed: bool = True,
    workspace: Workspace | Callable[[], Workspace] | None = None,
) -> Comparison:
    """Compare contenders on the judged queries of a split; without any, say how far their lists agree.

    The parameters are those of `Workbench.compare` and of `Workspace.open`, and these:

    Parameters
    ----------
    source : Dataset, str or Path
        The data set, or its folder.
    contenders : str, sequence, mapping, or one contender
        See `steelyard_eval.compare.contenders`. The systems of `SYSTEMS` by default; with a recording of lists,
        each list alone and their RRF.
    verify : bool
        Whether ir_measures computes every metric of the lists again; the document then holds the largest
        differences as `verification`.
    timed : bool
        Whether live searches are timed. Functions and endpoints are searched once, and timed during that.
    workspace : Workspace or function
        The data set if it is already indexed, or a function that indexes it when a contender needs it.

    Raises
    ------
    ConfigError, DataError
        For contenders that cannot be read, with all such faults at once; for an unusable answer of an endpoint.
    """
    dataset = as_dataset(source)
    table = None if recording is None else open_recording(Path(recording), dataset)
    lists = recorded_lists(table)
    names = separate(metrics) if isinstance(metrics, str) else metrics
    readers = read_all(usual(lists) if contenders is None else contenders, lists or ())
    parsed = together(partial(parse_measures, names), partial(distinct, readers))
    asked, named = cast("tuple[tuple[Measure, ...], list[Named | ListContender]]", parsed)
    measures = _with_judged(asked)
    today = read(dataset.system).label if dataset.system else ""
    base, named = with_baseline(named, baseline, lists or (), today)
    chosen = dataset.split(split)
    queries = judged(dataset, chosen)
    if not chosen:
        raise ConfigError(f"{dataset.called}: the split has no queries; add some to queries.jsonl")
    size = limit or max((m.cutoff or 10 for m in measures), default=10)
    opened = workspace or partial(Workspace.open, dataset, embedder, jobs=jobs)
    arena = Arena.of(dataset, named, size, table, opened)
    nothing = [query for query in chosen if not query.answerable and query.split != LOGGED]
    rows = arena.run(named, queries or chosen, timed, nothing, measures[0])
    values = {row.label: _values(row.ranked, dataset, measures) if queries else {} for row in rows}
    with run_folder(None if runs is None else Path(runs), verify) as folder:
        files = (_write_runs(folder, rows) if folder else {}) | _given(rows)
        qrels = {query.id: dataset.qrels[query.id] for query in queries}
        verified = verify_runs(files, qrels, values, measures, size) if verify and queries else None
    case = ComparisonCase(
        dataset=dataset,
        arena=arena,
        named=named,
        rows=rows,
        values=values,
        chosen=chosen,
        queries=queries,
        asked=names,
        measures=measures,
        baseline=base,
        used=baseline is not None or base == today,
        split=split,
        asked_limit=limit,
        limit=size,
        seed=seed,
        timed=timed,
        recording=recording,
        silence=silences(dataset, rows),
        stale=stale_lists(dataset, queries or chosen, rows, measures[0].cutoff or size, base),
    )
    record = document(case)
    if tuple(names) != METRICS:  # a table in LaTeX has what was named
        record["metrics"] = [str(measure) for measure in asked]
    if verified:
        record["verification"] = verified
    return Comparison(record, values, tuple(query.id for query in queries))


def _with_judged(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures and Judged at the primary cutoff, because unjudged hits make a gain doubtful."""
    if not measures:
        raise ConfigError("no metric is named; name at least one, such as nDCG@10")
    return tuple(dict.fromkeys((*measures, Measure("Judged", measures[0].cutoff or 10))))


def _values(ranked: Ranked, dataset: Dataset, measures: Sequence[Measure]) -> dict[str, Floats]:
    """float64[Q] of every measure, by its name."""
    return {str(measure): values for measure, values in ranked.metrics(dataset.qrels, measures).items()}


def _given(rows: Sequence[ArenaRow]) -> dict[str, Path]:
    """The runs that contenders were read from, by label."""
    lists = [row.contender for row in rows if isinstance(row.contender, ListContender)]
    return {contender.label: contender.file for contender in lists if contender.file}


def _write_runs(folder: Path, rows: Sequence[ArenaRow]) -> dict[str, Path]:
    """Write a file for each contender, named by `Row.tag` with a number if needed; return the files by label."""
    tags = [row.tag for row in rows]
    names = [f"{tag}.{tags[:i].count(tag) + 1}" if tags.count(tag) > 1 else tag for i, tag in enumerate(tags)]
    files = {}
    for row, name in zip(rows, names, strict=True):
        lists = row.ranked
        path = files[row.label] = folder / f"{name}.run"
        write_run(path, lists.queries, lists.offsets, lists.entry, lists.entries, name)
    return files
