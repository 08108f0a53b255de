"""A search against itself: without each of its parts, and with the vectors of another model.

Is a stage worth it? The search is compared without each signal, and without each stage after the fusion.

May the embedding model be changed? A model alone says little: what it gains alone is mostly lost where keywords
are fused with it, and weights that were tuned for one model are wrong for another. So one strategy is tuned for
both, and every query is measured under weights that were chosen without it.
"""

from dataclasses import replace

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.finish import Cut
from steelyard.retrievers import EMBEDDING
from steelyard_eval.choose.recommend import Recommendation, recommend
from steelyard_eval.common.configurations import Setting, split_contenders
from steelyard_eval.compare.answer import JUDGED, answer
from steelyard_eval.compare.compare import compare
from steelyard_eval.compare.contenders import Given, read_config
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import judged, unit_numbers
from steelyard_eval.measures.metrics import known_mean, parse_measures
from steelyard_eval.measures.paired import MARGIN, mean_interval, paired
from steelyard_eval.recording.next_steps import words_of
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Answer, Cell, Decision, Fact, Latency, Message, Result, Row, Table
from steelyard_eval.result.structs import replace as changed
from steelyard_eval.views.frames import Answered

WHOLE = "whole"
TEN = 10
FUSED = "rrf(bm25, vector)"  # what is compared under two models where today's search reads no vectors
COLUMNS = ["stage", "replaced", "ms_saved", "calls_saved"]
OF_WHOLE = frozenset({"apart", "buried", "shared_recipe"})
"""Notices and tables that would say of each part what `compare` says of the whole search."""
OF_ONE_MODEL = frozenset({"lsa", "tuned_rows", "unjudged"})  # notices that say nothing of both models
KINDS = {"same": "idle", "better": "idle", "worse": "needed", "open": "open"}


def compare_stages(space: Workspace, config: Given, metrics: str, split: str | None, seed: int) -> Answered:
    """Compare a configuration with what is left of it without each part, on the labelled queries of a split."""
    setting = Setting(parse_measures([split_contenders(metrics)[0]])[0].places, space.model)
    parts = without_each(read_config(config).config(setting))
    found = compare(space.dataset, parts, baseline=WHOLE, metrics=metrics, split=split, seed=seed, workspace=space)
    if not found.values:
        raise ConfigError(f"{space.dataset.called} has no labels to measure a stage by; label some queries")
    return replace(found, result=with_stages(found.result))


def without_each(config: SearchConfig) -> dict[str, SearchConfig]:
    """The configuration, and what is left without each part, by name; ConfigError where it has one part alone."""
    strategy = config.effective
    made = {WHOLE: config}
    for name in sorted(strategy.signals):
        if (left := strategy.without({name})) is not None:
            made[f"without {name}"] = replace(config, strategy=left, by_intent={})
    for at, stage in enumerate(config.finish):
        if not isinstance(stage, Cut):
            finish = (*config.finish[:at], *config.finish[at + 1 :])
            made[f"without {str(stage).partition('(')[0]}"] = replace(config, finish=finish)
    if len(made) < 2:
        raise ConfigError(f"{config.name} is one list without stages; name a search of several parts")
    return made


def with_stages(result: Result) -> Result:
    """The result with what each part does to the lists, and the parts that pay nothing.

    A part pays nothing where the search is better without it, or differs by less than the margin. One without
    which no query changes may need facts that these notes lack. Holm's correction is over all parts.
    """
    tested = [(row, row.against) for row in result.rows if row.against]
    parts: dict[str, list[str]] = {kind: [] for kind in ("unused", *KINDS.values())}
    for row, test in tested:
        kind = KINDS[test.verdict] if test.wins or test.losses else "unused"
        parts[kind].append(row.label.removeprefix("without "))
    facts: dict[str, Fact] = {"metric": result.metric, "margin": MARGIN}
    facts |= {name: own or None for name, own in parts.items()}
    if len(parts["idle"]) == 1:
        change = next(test.gain for row, test in tested if row.label == f"without {parts['idle'][0]}")
        facts |= {"idle": None, "idle_one": parts["idle"][0], "idle_change": change}
    whole, none = result.row(WHOLE), Latency()
    rows: list[list[Cell]] = []
    for row, _ in tested:
        took, before = ((one.cost.latency or none).p50_ms for one in (row, whole))
        saved = None if took is None or before is None else before - took
        calls = (whole.cost.embedded or 0) - (row.cost.embedded or 0)
        rows.append([row.label, _mean_new_in_first_ten(result, row.label), saved, calls])
    notices = [one for one in result.notices if one.key not in OF_WHOLE]
    tables = [Table("stages", COLUMNS, rows), *(table for table in result.tables if table.key not in OF_WHOLE)]
    return changed(result, answer=Answer("stages", facts), notices=notices, tables=tables)


def _mean_new_in_first_ten(result: Result, label: str) -> float:
    pairs = [(query.lists[WHOLE].entries, query.lists[label].entries) for query in result.queries]
    return sum(len({*own[:TEN]} - {*other[:TEN]}) for own, other in pairs) / max(len(pairs), 1)


def compare_models(
    dataset: Dataset, strategy: Given | None, old: str, new: str, metrics: str = "nDCG@10", seed: int = 0
) -> Answered:
    """Compare one strategy with the vectors of two models, each with weights of its own, tuned out of fold.

    `old` and `new` name embedders, as `Workspace.open` takes them. Returns two rows, named by their models, with
    what their searches cost, and the paired test. Raises ConfigError where the data has no labels, or where both
    are the same model.
    """
    queries, metric = judged(dataset, tuning_queries(dataset)[0]), split_contenders(metrics)[0]
    if len(queries) < 2:
        raise ConfigError(f"{dataset.called}: comparing two models needs labelled queries; label some")
    config = read_config(strategy or dataset.today).config(Setting(TEN))
    if not config.effective.signals & EMBEDDING and strategy:
        raise ConfigError(f"{strategy} reads no vectors; name a strategy that does, such as {FUSED!r}")
    strategy = strategy or (dataset.today if config.effective.signals & EMBEDDING else FUSED)
    free = {name: replace(one, model="") for name, one in config.retrievers.items()}  # a file may name one of both
    only = replace(config, retrievers=free) if config.models else strategy
    sides = [
        recommend(dataset.embedded_by(name), only=only, metric=metric, embedder=name, seed=seed, timed=True)
        for name in (old, new)
    ]
    names = [side.result.provenance.model or "none" for side in sides]
    if names[0] == names[1]:
        raise ConfigError(f"{old} and {new} are the same vectors ({names[0]}); name two models")
    units, (before, after) = unit_numbers(queries).tolist(), [side.out_of_fold for side in sides]
    test = paired({names[1]: after}, before, units, seed=seed)[names[1]]
    made = [_row(side, name, metric, units) for side, name in zip(sides, names, strict=True)]
    rows = [made[0], changed(made[1], against=test)]
    told = answer(rows, names[0], metric, dataset, {}, {}, queries=len(queries), model=names[1])
    shares = [known_mean(side.values[_shown(side).label][str(JUDGED)]) for side in sides]
    labelled = [f"{share:.0%} under {name}" for name, share in zip(names, shares, strict=True) if min(shares) < 1]
    base = sides[0].result
    words = words_of("compare", dataset, str(strategy), options={"--embedder": old})
    words += ["--embedder", new] if words else []
    about = changed(base.provenance, command=words, baseline=names[0], metrics=[metric], candidates=None)
    about = changed(about, model=" and ".join(names))
    told = changed(told, formula="")
    result = changed(base, kind="compare", answer=told, provenance=about, rows=rows, decision=None, tables=[])
    values = {name: {metric: side.out_of_fold} for name, side in zip(names, sides, strict=True)}
    both = [one for side in sides for one in side.result.notices if one.key not in OF_ONE_MODEL]
    notices = [Message("own_weights", {}), *(one for at, one in enumerate(both) if one not in both[:at])]
    if labelled:
        notices.insert(1, Message("unjudged_models", {"shares": labelled}))
    return Answered(changed(result, queries=[], entries={}, notices=notices), values)


def _shown(side: Recommendation) -> Row:
    """The row of the strategy as it is tuned on all queries."""
    decision = side.result.decision or Decision("keep")
    return side.result.row(decision.chosen or side.result.provenance.baseline)


def _row(side: Recommendation, name: str, metric: str, units: list[int]) -> Row:
    """The same with its value out of fold."""
    means = {metric: mean_interval(side.out_of_fold, units).shown(0.0)}
    return changed(_shown(side), label=name, means=means, against=None, gain=None, tuned=False)
