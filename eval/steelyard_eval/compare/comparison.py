"""Compares configurations on the same queries, with intervals, tests, latency and cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from steelyard import __version__
from steelyard.arrays import Floats
from steelyard.errors import ConfigError, nearest, shown, together, visible
from steelyard.query import Query
from steelyard_eval import SYSTEMS
from steelyard_eval.compare.agreement import agreement, in_words
from steelyard_eval.compare.arena import Arena, Row
from steelyard_eval.compare.contenders import (
    Given,
    GivenMany,
    Named,
    distinct,
    read,
    read_all,
    read_strategies,
    read_systems,
    separate,
    written_as,
)
from steelyard_eval.compare.lists import Listed
from steelyard_eval.compare.verification import run_folder, verify_runs
from steelyard_eval.compare.warnings import JUDGED, warnings
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.datasets.groups import Unit, units
from steelyard_eval.measures.metrics import Measure, parse_measures
from steelyard_eval.measures.runs import Ranked, write_run
from steelyard_eval.measures.statistics import compare_all, mean_interval
from steelyard_eval.progress import bar
from steelyard_eval.rankings import Lists, described, ordered, query_rows, rankings, spelled
from steelyard_eval.recording.select import open_recording, recorded_lists
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.results import Result, frame_html

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")
DIALECT = "trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; ties by entry id, ascending"
Source = Dataset | str | Path
"""A data set, or the folder it is in."""
Reader = Callable[[], Named | Listed]


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """The result of a comparison; `record` is the JSON document of the command line.

    `values` has every metric of every query: label -> metric name -> float64[Q], in the order of
    `queries`.
    """

    record: Mapping[str, Any]
    values: Mapping[str, Mapping[str, Floats]]
    queries: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each configuration and metric, with the mean and its interval.

        Without judgments: a row for each pair of contenders, with RBO and Jaccard@10.
        """
        import pandas as pd

        return pd.DataFrame(self.record["results"] or self.record["agreement"])

    def tests(self) -> pd.DataFrame:
        """Return a row for each challenger: its difference from the baseline, interval, p, wins, verdict."""
        import pandas as pd

        return pd.DataFrame(self.record["comparisons"]).drop(columns=["baseline", "metric"], errors="ignore")

    def table(self, round: int | None = None) -> pd.DataFrame:  # noqa: A002 -- PyTerrier's name for it
        """Return a row for each contender and a column for each metric, as PyTerrier's Experiment does.

        Beside them are queries won and lost against the baseline on the primary metric, and the corrected p-value.
        `round` is the number of decimals.
        """
        import pandas as pd

        primary = self.record["primary"]
        tests = {row["challenger"]: row for row in self.record["comparisons"]}
        rows = []
        for label, own in self.values.items():
            test = tests.get(label, dict.fromkeys(("wins", "losses", "p_holm")))
            names = zip(("+", "-", "p-value"), ("wins", "losses", "p_holm"), strict=True)
            means = {metric: float(values.mean()) for metric, values in own.items()}
            rows.append({"name": label, **means, **{f"{primary} {sign}": test[name] for sign, name in names}})
        return _rounded(pd.DataFrame(rows).set_index("name"), round)

    def per_query(self, metric: str | None = None, round: int | None = None) -> pd.DataFrame:  # noqa: A002
        """Return a row for each query: text, category, and one metric (the primary one) of every contender."""
        import pandas as pd

        wanted = str(parse_measures([metric or self.record["primary"]])[0])
        if wanted not in self._metrics:
            raise ConfigError(f"metric {shown(wanted)} was not compared{nearest(wanted, self._metrics)}")
        facts = [{name: row[name] for name in ("id", "text", "category")} for row in self.record["per_query"]]
        frame = pd.DataFrame(facts).set_index("id")
        return _rounded(frame.assign(**{label: own[wanted] for label, own in self.values.items()}), round)

    @property
    def _metrics(self) -> list[str]:
        return list(next(iter(self.values.values())))

    def __repr__(self) -> str:
        return visible(f"Comparison({', '.join(self.values)} on {self.record['dataset']['name']})")

    def _repr_html_(self) -> str:
        return frame_html(self.table().reset_index() if self.record["results"] else self.to_frame())

    def plot(self, metric: str | None = None, *, what: str = "means") -> Figure:
        """Plot a figure of the comparison.

        Parameters
        ----------
        metric : str
            Of the means; the primary one by default. All other figures are of the primary metric.
        what : str
            means (with intervals), differences (to the baseline), queries (the difference on each), categories,
            cost (quality against latency).
        """
        from steelyard_eval.figures import compared

        self._refuse_unlabelled("plot")
        return compared(self.record, what, metric)

    def report(self, path: str | Path) -> list[Path]:
        """Write the report (HTML, Markdown, JSON, timing.json) into this folder and return the paths."""
        from steelyard_eval.report import write_report

        self._refuse_unlabelled("report")
        return write_report(self.to_json(), path)

    def _refuse_unlabelled(self, what: str) -> None:
        if not self.record["results"]:
            name = self.record["dataset"]["name"]
            raise ConfigError(
                f"{name} has no judgments, so there is nothing to {what}; print it, or add qrels.txt"
            )


def compare(
    source: Source,
    contenders: GivenMany | None = None,
    strategies: str | Sequence[str] = (),
    *,
    systems: str | Sequence[str] | None = None,
    labels: Mapping[str, Given] | None = None,
    baseline: Given | int | None = None,
    metrics: str | Sequence[str] = METRICS,
    split: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
    jobs: int = 1,
    recording: str | Path | None = None,
    runs: str | Path | None = None,
    verify: bool = False,
    seed: int = 0,
    timed: bool = True,
    workspace: Workspace | Callable[[], Workspace] | None = None,
) -> Comparison:
    """Compare contenders on the judged queries of a split; without any, say how far their lists agree.

    Parameters
    ----------
    source : Dataset, str or Path
        The data set, or its folder.
    contenders : str, sequence, mapping, or one contender
        What is compared: systems, strategies, weights files, TREC runs, endpoints, tables of lists, functions, in
        any mixture; see `steelyard_eval.compare.contenders`. A string may name several, separated by commas. The
        systems of `SYSTEMS` when neither contenders nor systems are named; with a recording of lists, each list
        alone and their RRF.
    strategies : str or sequence of str
        More contenders, each read as an expression.
    systems : str or sequence of str
        More contenders, each read as a system.
    labels : mapping
        More contenders, by label.
    baseline : str, int or any contender
        What the others are tested against: a label of the comparison, or its place in the order of contenders from
        0, or one more contender, such as what you run today. The first contender by default.
    metrics : str or sequence of str
        Names of ir_measures; the first is the primary one, which alone is tested, with Holm's correction.
    split : str
        train, dev, test or all; by default the data set's `report_split`.
    limit : int
        Length of every list; the largest cutoff of the metrics by default.
    embedder : str
        See `Workspace.open`.
    jobs : int
        Processes that search; the result is the same.
    recording : str or Path
        A folder that `record` wrote: contenders are replayed from it and nothing is searched.
    runs : str or Path
        Folder to write every list to as a TREC run.
    verify : bool
        Whether ir_measures computes every metric of the lists again; the document then holds the largest
        differences as `verification`.
    seed : int
        Seed of the tests.
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
    readers = [
        *_read_contenders(contenders, strategies, systems, lists),
        *read_all(labels, lists or ()),
    ]
    found = together(partial(parse_measures, names), partial(distinct, readers))
    asked, named = cast("tuple[tuple[Measure, ...], list[Named | Listed]]", found)
    measures = _with_judged(asked)
    base, named = _baseline(named, baseline, lists or ())
    chosen = dataset.split(split)
    queries = judged(dataset, chosen)
    if not chosen:
        raise ConfigError(f"{dataset.name}: the split has no queries; add some to queries.jsonl")
    size = limit or max((m.cutoff or 10 for m in measures), default=10)
    opened = workspace or partial(Workspace.open, dataset, embedder, jobs=jobs)
    arena = Arena.of(dataset, named, size, table, opened)
    rows = arena.run(named, queries or chosen, timed)
    values = {row.label: _values(row.ranked, dataset, measures) if queries else {} for row in rows}
    with run_folder(None if runs is None else Path(runs), verify) as folder:
        files = _write_runs(folder, rows) if folder else {}
        own = {query.id: dataset.qrels[query.id] for query in queries}
        verified = {"verification": verify_runs(files, own, values, measures)} if verify and queries else {}
    groups = units(queries)
    tests = _comparisons(values, str(measures[0]), base, groups, seed) if queries else []
    alike = {} if queries else _alike(rows, chosen, base)
    facts = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "command": _command(dataset, named, names, base, split, limit, seed, _origin(arena, recording)),
        "dataset": _about(dataset, len(chosen), len(queries)),
        "split": split or dataset.report_split or "all",
        "limit": size,
        "dialect": DIALECT,
        "model": arena.model,
        "recipe": arena.recipe,
        "notices": [
            *dataset.notices,
            *(notice for row in rows for notice in row.notices),
            *_shallow(measures, size),
            *arena.notices(rows, timed),
            *(_warnings(queries, values, measures[0], base, tests, arena.model) if queries else []),
        ],
        "primary": str(measures[0]),
        "baseline": base,
        "configurations": [row.about() for row in rows],
        "results": _results(rows, values, groups, seed),
        "comparisons": tests,
        "per_query": query_rows(queries, {label: own[str(measures[0])] for label, own in values.items() if own}),
        "rankings": _rankings(dataset, queries, rows, values, str(measures[0]), base) if queries else {},
        "timing": [row.timing() for row in rows],
        "layers": [{"label": row.label, **row.progress} for row in rows if row.progress],
        "tuning": None,
        **verified,
        **alike,
    }
    return Comparison(facts, values, tuple(query.id for query in queries))


def _warnings(
    queries: Sequence[Query],
    values: Mapping[str, Mapping[str, Floats]],
    primary: Measure,
    baseline: str,
    tests: Sequence[Mapping[str, Any]],
    model: str,
) -> list[str]:
    own, judged = (
        {label: found[str(one)] for label, found in values.items() if str(one) in found}
        for one in (primary, JUDGED)
    )
    return warnings(queries, own, judged, baseline, tests, model)


def _alike(rows: Sequence[Row], queries: Sequence[Query], baseline: str) -> dict[str, Any]:
    """How far the lists agree, and what to label first, for queries without judgments."""
    found = agreement({row.label: row.ranked.lists() for row in rows}, queries)
    return {"sentence": f"Keep {baseline} for now: {in_words(found['disagreement'], len(queries))}.", **found}


def _read_contenders(
    contenders: GivenMany | None,
    strategies: str | Sequence[str],
    systems: str | Sequence[str] | None,
    lists: tuple[str, ...] | None,
) -> list[Reader]:
    """A reader for every contender that is named, or for the usual ones when none is."""
    if contenders is None and systems is None:
        systems = SYSTEMS if lists is None else ()
        contenders = [*(lists or ()), *([f"rrf({', '.join(lists)})"] if lists and len(lists) > 1 else [])]
    return [
        *read_all(contenders, lists or ()),
        *read_systems(systems or ()),
        *read_strategies(strategies, lists or ()),
    ]


def _with_judged(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures and Judged at the primary cutoff, because unjudged hits make a gain doubtful."""
    if not measures:
        raise ConfigError("no metric is named; name at least one, such as nDCG@10")
    return tuple(dict.fromkeys((*measures, Measure("Judged", measures[0].cutoff or 10))))


def _shallow(measures: Sequence[Measure], limit: int) -> list[str]:
    """A notice when the limit is below a cutoff, because the missing results count as misses."""
    cut = [str(measure) for measure in measures if (measure.cutoff or 0) > limit]
    return [f"the limit {limit} is below the cutoff of {', '.join(cut)}"] if cut else []


def _baseline(
    named: list[Named | Listed], given: Given | int | None, lists: Collection[str]
) -> tuple[str, list[Named | Listed]]:
    """The label of the baseline, and the contenders including it, in front if it was not among them."""
    labels = [one.label for one in named]
    if given is None:
        return labels[0], named
    if isinstance(given, int):
        if not 0 <= given < len(labels):
            places = f"0..{len(labels) - 1}, the places of {', '.join(labels)}"
            raise ConfigError(f"baseline {given} is outside {places}")
        return labels[given], named
    if isinstance(given, str) and given.removesuffix(":documented") in labels:
        return given.removesuffix(":documented"), named
    try:
        added = read(given, lists=lists)
    except ConfigError as error:
        if isinstance(given, str) and "=" not in given and "(" not in given:
            raise ConfigError(f"baseline {shown(given)} is not compared{nearest(given, labels)}") from None
        raise ConfigError(f"baseline: {error}") from None
    if added.label in labels:
        return added.label, named
    return added.label, [added, *named]


def _rounded(frame: pd.DataFrame, decimals: int | None) -> pd.DataFrame:
    return frame if decimals is None else frame.round(decimals)


def _values(ranked: Ranked, dataset: Dataset, measures: Sequence[Measure]) -> dict[str, Floats]:
    """float64[Q] of every measure, by its name."""
    return {str(measure): values for measure, values in ranked.metrics(dataset.qrels, measures).items()}


def _about(dataset: Dataset, queries: int, with_judgments: int) -> dict[str, Any]:
    return {**described(dataset), "queries": queries, "judged": with_judgments}


def _results(
    rows: Sequence[Row], values: Mapping[str, Mapping[str, Floats]], groups: list[Unit] | None, seed: int
) -> list[dict[str, Any]]:
    """Tidy records, one for each contender and metric."""
    records = []
    for row in bar("intervals")(rows):
        about = {k: v for k, v in row.about().items() if k in ("label", "system", "profile", "strategy")}
        for metric, per_query in values[row.label].items():
            interval = mean_interval(per_query, groups)
            records.append({**about, "metric": metric, **asdict(interval), "queries": len(per_query)})
    return records


def _comparisons(
    values: Mapping[str, Mapping[str, Floats]], metric: str, baseline: str, groups: list[Unit] | None, seed: int
) -> list[dict[str, Any]]:
    challengers = {label: own[metric] for label, own in values.items() if label != baseline}
    if not challengers:
        return []
    found = compare_all(challengers, values[baseline][metric], groups, seed=seed)
    return [
        {"challenger": label, "baseline": baseline, "metric": metric, **asdict(outcome)}
        for label, outcome in found.items()
    ]


def _rankings(
    dataset: Dataset,
    queries: Sequence[Query],
    rows: Sequence[Row],
    values: Mapping[str, Mapping[str, Floats]],
    metric: str,
    baseline: str,
) -> dict[str, Any]:
    """The lists of the baseline, then of the others, best first."""
    own: dict[str, Lists] = {row.label: row.lists for row in rows}
    labels = ordered({label: float(found[metric].mean()) for label, found in values.items()}, [baseline])
    return rankings(dataset, queries, [(label, partial(own.__getitem__, label)) for label in labels])


def _command(
    dataset: Dataset,
    named: Sequence[Named | Listed],
    metrics: Sequence[str],
    baseline: str,
    split: str | None,
    limit: int | None,
    seed: int,
    origin: Mapping[str, object],
) -> str | None:
    """The command that compares the same; None where a contender is known in Python alone."""
    words = [_word(one) for one in named]
    if None in words:
        return None
    options: dict[str, object] = {
        "--metrics": ",".join(metrics),
        "--baseline": baseline,
        "--split": split,
        "--limit": limit,
    }
    options |= {**origin, "--seed": seed or None}
    return spelled("compare", dataset, *filter(None, words), options=options)


def _origin(arena: Arena, recording: str | Path | None) -> Mapping[str, object]:
    """Where the lists are from: a recording, or live searches with an embedder."""
    return arena.space.options if arena.space else {"--recording": recording}


def _word(one: Named | Listed) -> str | None:
    if isinstance(one, Named):
        return one.word
    return written_as(one.label, one.source) if one.kind in ("run", "endpoint") else None


def _write_runs(folder: Path, rows: Sequence[Row]) -> dict[str, Path]:
    """Write a file for each contender, named by `Row.tag` with a number if needed; return the files by label."""
    tags = [row.tag for row in rows]
    names = [f"{tag}.{tags[:at].count(tag) + 1}" if tags.count(tag) > 1 else tag for at, tag in enumerate(tags)]
    files = {}
    for row, name in zip(rows, names, strict=True):
        lists = row.ranked
        path = files[row.label] = folder / f"{name}.run"
        write_run(path, lists.queries, lists.offsets, lists.entry, lists.entries, name)
    return files
