"""Compares configurations on the same queries: contenders to lists to values by query to tests."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, collect_errors
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import NamedConfig, split_contenders
from steelyard_eval.common.console import bar
from steelyard_eval.compare.answer import JUDGED, answer, of_lists, of_values
from steelyard_eval.compare.buried import buried
from steelyard_eval.compare.contenders import (
    Contender,
    Given,
    GivenMany,
    distinct,
    read,
    read_all,
    usual,
    with_baseline,
)
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists_and_latency import Made, Runner, ties
from steelyard_eval.compare.result import agreement, categories, layers_of, silences, stale_lists
from steelyard_eval.compare.score_scales import merged
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import LOGGED, Dataset, as_dataset
from steelyard_eval.datasets.groups import judged, unit_numbers
from steelyard_eval.measures.metrics import Measure, evaluate_lists, parse_measures
from steelyard_eval.measures.paired import mean_intervals, paired
from steelyard_eval.recording.next_steps import label_step, words_of
from steelyard_eval.recording.provenance import TOOL, edited, overlap_notice
from steelyard_eval.recording.replay import facts_of, ordered, rows_by_query
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Answer, Fact, Provenance, Result, replace
from steelyard_eval.views.frames import Answered, Values

METRICS = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")


def compare(
    data: Dataset | str | Path,
    contenders: GivenMany | None = None,
    *,
    baseline: Given | None = None,
    metrics: str | Sequence[str] = METRICS,
    split: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
    recording: str | Path | None = None,
    runs: str | Path | None = None,
    verify: bool = False,
    seed: int = 0,
    timed: bool = True,
    workspace: Workspace | Callable[[], Workspace] | None = None,
) -> Answered:
    """Compare contenders on the judged queries of a split; without any, say how far their lists agree.

    The parameters are those of `Workbench.compare` and of `Workspace.open`. The `contenders`, see
    `steelyard_eval.compare.contenders`, are the systems of `SYSTEMS` by default; with a recording of lists each
    list alone and their RRF. With `verify` ir_measures computes every metric of the lists again, and the largest
    differences are the table `verification`. Without `timed` no live search is timed; functions and endpoints are
    searched once, and timed during that. `workspace` is the data set if it is already indexed, or a function that
    indexes it when a contender needs it.

    Raises ConfigError or DataError for contenders that cannot be read, with all such faults at once, and for an
    unusable answer of an endpoint.
    """
    dataset = as_dataset(data)
    source = None if recording is None else Source.of_recording(dataset, recording)
    lists = source.lists if source else None
    names = split_contenders(metrics) if isinstance(metrics, str) else metrics
    readers = read_all(usual(lists) if contenders is None else contenders, lists or ())
    parsed = collect_errors(partial(parse_measures, names), partial(distinct, readers))
    asked, named = cast("tuple[tuple[Measure, ...], list[NamedConfig | ListContender]]", parsed)
    if not asked:
        raise ConfigError("no metric is named; name at least one, such as nDCG@10")
    if asked[0].family == JUDGED.family:
        raise ConfigError(f"{asked[0]} measures label coverage, not quality; name it after nDCG@10")
    # Unjudged hits make a gain doubtful.
    measures = tuple(dict.fromkeys((*asked, Measure(JUDGED.family, asked[0].cutoff or 10))))
    today = read(dataset.system).label if dataset.system else ""
    base, named = with_baseline(named, baseline, lists or (), today)
    chosen = dataset.split(split)
    queries = judged(dataset, chosen)
    if not chosen:
        raise ConfigError(f"{dataset.called}: the split has no queries; add some to queries.jsonl")
    size = limit or max(m.places for m in measures)
    opened = workspace or partial(Workspace.open, dataset, embedder)
    arena = Runner(source or Source.needed_by(named, dataset, opened), size)
    nothing = [query for query in chosen if not query.answerable and query.split != LOGGED]
    made = arena.run(named, queries or chosen, timed, nothing, measures[0].by_places)
    values: dict[str, dict[str, Floats]] = {}
    for one in made if queries else ():
        found = evaluate_lists(one.ranked, dataset.qrels, measures, dataset.tokens)
        values[one.label] = {str(measure): own for measure, own in found.items()}
    checked = []
    if runs is not None or verify:
        from steelyard_eval.compare.verification import verified

        checked = verified(made, dataset, queries, values, measures, size, runs, verify)
    words = {one.label: one.word for one in named}
    known = [word for word in words.values() if word is not None]
    source, searched = arena.source, arena.source.options
    options: dict[str, object] = {"--metrics": ",".join(names), "--current": base, "--split": split}
    options |= {"--limit": limit, **searched, "--seed": seed or None}
    told, age = buried(one.age for one in made if one.age)
    result = Result(
        "compare",
        Answer(""),
        Provenance(
            TOOL,
            facts_of(dataset, len(chosen), len(queries)),
            command=words_of("compare", dataset, *known, options=options) if len(known) == len(words) else [],
            metrics=list(map(str, measures)),
            named=[] if tuple(names) == METRICS else list(map(str, asked)),
            baseline=base,
            split=split or dataset.report_split or "all",
            limit=size,
            model=source.model,
            recipe=source.recipe,
            intents=source.intents or "",
            ties=ties((one.kind for one in named), source.lists is not None),
            seed=seed,
        ),
        rows=[one.row() for one in made],
        notices=[*told, *of_lists(arena, made, queries, measures, size, timed)],
        tables=[
            *silences(dataset, made),
            *stale_lists(dataset, queries or chosen, made, measures[0].cutoff or size, base),
            *layers_of(made),
            *age,
            *checked,
        ],
    )
    if not queries:
        # how far the lists agree, and what to label first
        agreed, disagreement = agreement({one.label: one.ranked.lists() for one in made})
        facts: dict[str, Fact] = {"baseline": base}
        facts |= {} if disagreement is None else {"disagreement": disagreement}
        key = "disagree_alone" if disagreement is None else "disagree"
        step = label_step(dataset, "judge_pairs", pairs=dataset.pairs)
        said = Answer(key, facts, steps=[step])
        notices = list(merged(result.notices))
        return Answered(replace(result, answer=said, notices=notices, tables=[agreed, *result.tables]))
    result = _with_measures(result, dataset, made, queries, values, seed)
    used, model = baseline is not None or base == today, source.model
    said = answer(
        result.rows, base, result.metric, dataset, words, searched, used=used, queries=len(queries), model=model
    )
    return Answered(replace(result, answer=said), values)


def _with_measures(
    result: Result, dataset: Dataset, made: Sequence[Made], queries: Sequence[Query], values: Values, seed: int
) -> Result:
    base, metric, model = result.provenance.baseline, result.metric, result.provenance.model
    units = unit_numbers(queries).tolist()
    primary = {label: of[metric] for label, of in values.items()}
    challengers = {label: own for label, own in primary.items() if label != base}
    tests = paired(challengers, primary[base], units, seed=seed)
    rows = []
    for row, one in bar("intervals", list(zip(result.rows, made, strict=True))):
        means = mean_intervals(values[row.label], units)
        if isinstance(one.contender, Contender):  # by the labels that it is compared with?
            config = one.contender.config
            tuned = bool(overlap_notice(one.label, config, dataset, queries))
            row = replace(row, tuned=tuned, edited=edited(config))
        rows.append(replace(row, means=means, against=tests.get(row.label)))
    best = ordered({label: float(own.mean()) for label, own in primary.items()}, [base])
    lists = {one.label: one.lists for one in made}
    listed = [(label, partial(lists.__getitem__, label)) for label in best]
    by_query, entries = rows_by_query(dataset, queries, primary, listed)
    said = of_values(dataset, queries, values, metric, base, tests.values(), model)
    sides = categories(dataset, queries, (base, best[1]), primary[base], primary[best[1]]) if challengers else []
    return replace(
        result,
        rows=rows,
        notices=list(merged([*said, *result.notices])),
        tables=[*sides, *result.tables],
        queries=by_query,
        entries=entries,
    )
