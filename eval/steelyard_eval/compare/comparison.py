"""Which strategy? Every configuration on the same queries, with intervals, tests, latency and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard import __version__
from steelyard.embedders import CachedEmbedder
from steelyard.errors import ConfigError, nearest, shown, together, visible
from steelyard.fields import format_time
from steelyard.fusion import parse_strategy
from steelyard.identity import share
from steelyard.query import Query
from steelyard.systems import find_system, find_systems
from steelyard.table import Floats
from steelyard_eval import SYSTEMS
from steelyard_eval.compare.contenders import Contender, contenders, usable
from steelyard_eval.compare.latency import timing
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import Unit, units
from steelyard_eval.measures.metrics import Judgments, Measure, parse_measures
from steelyard_eval.measures.runs import write_run
from steelyard_eval.measures.statistics import compare_all, mean_interval
from steelyard_eval.progress import bar
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import Replay, replay
from steelyard_eval.recording.workspace import Workspace, judged

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")
DIALECT = "trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; ties by entry id, ascending"


@dataclass(frozen=True, repr=False)
class Comparison:
    """The outcome of a comparison; `record` is the JSON document of the command line.

    `values` holds every metric of every query: label -> metric name -> float64[Q], in the order of
    `queries`.
    """

    record: Mapping[str, Any]
    values: Mapping[str, Mapping[str, Floats]]
    queries: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row a configuration and metric: label, system, profile, strategy, metric, mean, low, high, queries."""
        import pandas as pd

        return pd.DataFrame(self.record["results"])

    def __repr__(self) -> str:
        return visible(f"Comparison({', '.join(self.values)} on {self.record['dataset']['name']})")

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns=["strategy"])
        html: str = frame.to_html(index=False, escape=True, float_format=lambda value: f"{value:.4f}")
        return html

    def plot(self, metric: str | None = None) -> Figure:
        """Means and intervals of one metric, best on top."""
        from steelyard_eval.plots import intervals

        wanted = metric or self.record["primary"]
        return intervals([row for row in self.record["results"] if row["metric"] == wanted], wanted)


def compare(
    dataset: Dataset,
    systems: Sequence[str] = SYSTEMS,
    strategies: Sequence[str] = (),
    *,
    metrics: Sequence[str] = METRICS,
    baseline: str | None = None,
    split: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
    runs: Path | None = None,
    seed: int = 0,
    labels: Mapping[str, str] | None = None,
    timed: bool = True,
    workspace: Workspace | None = None,
) -> Comparison:
    """Run every system and strategy on the judged queries of a split.

    The first metric is the primary one: only it is tested, each challenger against `baseline` (a
    label; the first configuration by default), with Holm's correction. `limit` is the largest
    cutoff by default. Runs in TREC form go to `runs`. Raises ConfigError or DataError.
    """
    together(*_checks(systems, strategies, metrics))
    measures = _with_judged(parse_measures(metrics))
    size = limit or max((m.cutoff or 10 for m in measures), default=10)
    space = workspace or Workspace.open(dataset, embedder)
    pairs = [usable(space, row) for row in contenders(systems, strategies, size, space.model, labels)]
    rows = [row for row, _ in pairs]
    reduced = [notice for _, notices in pairs for notice in notices]
    base = _baseline(rows, baseline)
    chosen = dataset.split(split)
    queries = judged(dataset, chosen)
    if not queries:
        raise ConfigError(f"{dataset.name}: no query of the split has judgments; add them to qrels.txt")
    replays = _replays(space, queries, rows)
    values = _values(replays, dataset, queries, measures)
    if runs is not None:
        _write_runs(runs, rows, replays)
    groups = units(queries)
    facts = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "dataset": _about(dataset, len(chosen), len(queries)),
        "split": split or dataset.report_split or "all",
        "limit": size,
        "dialect": DIALECT,
        "model": space.model,
        "recipe": (space.embedder.recipe or "of each system") if space.embedder else "",
        "notices": [
            *dataset.notices,
            *reduced,
            *_shallow(measures, size),
            *_shared_recipe(space, rows),
            *_cached(space, timed),
        ],
        "primary": str(measures[0]),
        "baseline": base.label,
        "configurations": [_configuration(row) for row in rows],
        "results": _results(rows, values, groups, seed),
        "comparisons": _comparisons(values, str(measures[0]), base.label, groups, seed),
        "per_query": _per_query(queries, values, str(measures[0])),
        "timing": timing(space, queries, rows, replays, timed),
        "tuning": None,
    }
    return Comparison(facts, values, tuple(query.id for query in queries))


def _checks(
    systems: Sequence[str], strategies: Sequence[str], metrics: Sequence[str]
) -> list[Callable[[], object]]:
    """Every name a user wrote, to be read before anything runs."""
    names: list[Callable[[], object]] = [partial(find_systems, list(systems)), partial(parse_measures, metrics)]
    return [*names, *(partial(parse_strategy, text) for text in strategies)]


def _with_judged(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures, and how much of the primary one's cutoff is judged: a gain on unjudged hits is none."""
    if not measures:
        raise ConfigError("no metric is named; name at least one, such as nDCG@10")
    return tuple(dict.fromkeys((*measures, Measure("Judged", measures[0].cutoff or 10))))


def _shallow(measures: Sequence[Measure], limit: int) -> list[str]:
    """A limit below a cutoff leaves places empty, which count as misses."""
    cut = [str(measure) for measure in measures if (measure.cutoff or 0) > limit]
    return [f"the limit {limit} is below the cutoff of {', '.join(cut)}"] if cut else []


def _baseline(rows: Sequence[Contender], name: str | None) -> Contender:
    if name is None:
        return rows[0]
    labels = [row.label for row in rows]
    wanted = name.removesuffix(":documented")
    if wanted not in labels:
        raise ConfigError(f"baseline {shown(name)} is not compared{nearest(wanted, labels)}")
    return rows[labels.index(wanted)]


def _replays(space: Workspace, queries: Sequence[Query], rows: Sequence[Contender]) -> dict[str, Replay]:
    """Record each group of contenders that find the same lists once, then replay each configuration."""
    replays = {}
    for group in share([row.config for row in rows]):
        members = [rows[at] for at in group]
        table = record(space, queries, [row.config for row in members])
        for row in members:
            replays[row.label] = replay(table, row.config)
    return {row.label: replays[row.label] for row in rows}


def _shared_recipe(space: Workspace, rows: Sequence[Contender]) -> list[str]:
    """Recorded vectors stand for one text recipe, whatever the systems document: say so."""
    recipe = space.embedder.recipe if space.embedder else None
    own = {
        row.label: find_system(row.config.name).reading.recipe for row in rows if "vector" in row.config.retrievers
    }
    others = [label for label, documented in own.items() if recipe is not None and documented != recipe]
    if not others:
        return []
    return [f"all share the recorded vectors of {recipe!r}, also systems with another recipe: {', '.join(others)}"]


def _cached(space: Workspace, timed: bool) -> list[str]:
    """Vectors of queries that are kept on disk cost no time: say that latencies leave them out."""
    if not timed or not isinstance(space.embedder, CachedEmbedder):
        return []
    return [f"latencies leave out the embedding of queries by {space.model}: their vectors come from the cache"]


def _values(
    replays: Mapping[str, Replay], dataset: Dataset, queries: Sequence[Query], measures: Sequence[Measure]
) -> dict[str, dict[str, Floats]]:
    found = {}
    for label, run in replays.items():
        judgments = Judgments.of(dataset.qrels, [query.id for query in queries], run.table.entries)
        found[label] = {str(m): v for m, v in run.metrics(judgments, measures).items()}
    return found


def _about(dataset: Dataset, queries: int, with_judgments: int) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence,
        "sha256": dataset.sha256,
        "entries": len(dataset.entries),
        "queries": queries,
        "judged": with_judgments,
        "as_of": format_time(dataset.as_of),
    }


def _configuration(row: Contender) -> dict[str, Any]:
    return {
        "label": row.label,
        "system": row.config.system,
        "profile": row.config.profile,
        "strategy": str(row.config.effective),
        "family": row.family,
        "kind": row.kind,
    }


def _results(
    rows: Sequence[Contender], values: Mapping[str, Mapping[str, Floats]], groups: list[Unit] | None, seed: int
) -> list[dict[str, Any]]:
    """Tidy records, a row a configuration and metric."""
    records = []
    for row in bar("intervals")(rows):
        about = {k: v for k, v in _configuration(row).items() if k in ("label", "system", "profile", "strategy")}
        for metric, per_query in values[row.label].items():
            interval = mean_interval(per_query, groups, seed=seed)
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


def _per_query(
    queries: Sequence[Query], values: Mapping[str, Mapping[str, Floats]], metric: str
) -> list[dict[str, Any]]:
    return [
        {
            "id": query.id,
            "text": query.text,
            "category": query.category,
            "values": {label: float(own[metric][at]) for label, own in values.items()},
        }
        for at, query in enumerate(queries)
    ]


def _write_runs(folder: Path, rows: Sequence[Contender], replays: Mapping[str, Replay]) -> None:
    """DIR/<system>.<profile>.run, strategies of one's own numbered behind it."""
    own = 0
    for row in rows:
        run = replays[row.label]
        name = f"{row.config.system}.{row.config.profile}"
        if row.kind == "strategy":
            own += 1
            name += f".{own}"
        write_run(
            folder / f"{name}.run", run.table.queries, run.ranking.offsets, run.entry, run.table.entries, name
        )
