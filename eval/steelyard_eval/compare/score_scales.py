"""Notices on one configuration: retrievers that find nothing, and what the scales of a sum's signals do to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, TypedDict

import numpy as np

from steelyard.config import SearchConfig
from steelyard.fusion import Expr, Signal, parse_strategy
from steelyard.fusion.layered import LAST, Progress
from steelyard.fusion.node import nested
from steelyard.fusion.sums import BOUNDED, NormalizedSum
from steelyard.retrievers import CANDIDATE_RETRIEVERS, FETCHED
from steelyard.table.signal_table import SignalTable, count_rows, per_query
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.metrics import Measure, evaluate_lists
from steelyard_eval.recording.replay import replay
from steelyard_eval.result.structs import Fact, Message


class ProgressSummary(TypedDict):
    """How far layered searches went: counts of queries, and the share of them that each layer let by."""

    queries: int
    hit_rates: Annotated[dict[str, float], ("required", ("l0", "l1", "l2"))]
    at_threshold: int
    relaxed: dict[str, int]
    full_search: int
    without_result: int


def summary_of(progress: Progress) -> ProgressSummary:
    """Counts of queries, and the share of them that came through each layer."""
    asked, step = progress.answered, progress.step[progress.answered]
    counts = {"l0": progress.directories, "l1": progress.refined, "l2": progress.entries}
    relaxed = {str(number): int((step == number).sum()) for number in sorted(set(step.tolist()) - {0, LAST})}
    return {
        "queries": len(step),
        "hit_rates": {name: float((count[asked] > 0).sum()) / max(len(step), 1) for name, count in counts.items()},
        "at_threshold": int((step == 0).sum()),
        "relaxed": relaxed,
        "full_search": int((step == LAST).sum()),
        "without_result": int((progress.ranked[asked] == 0).sum()),
    }


def undated(dataset: Dataset, configs: Sequence[SearchConfig]) -> Iterator[Message]:
    """That recency takes entries without a date for new, where one of these ranks by it."""
    none = sum(entry.created_at is None and entry.updated_at is None for entry in dataset.entries)
    if none and any("recency" in config.effective.signals for config in configs):
        yield Message("undated", {"count": none, "entries": len(dataset.entries)})


DEAD = frozenset({"silent", "accidental"})
"""The keys of the notices on retrievers, which come before all others: without a retriever no verdict holds."""
MIN_SILENT_SHARE = 0.1
MIN_ACCIDENTAL = 10


def dead(
    label: str,
    config: SearchConfig,
    table: SignalTable,
    measure: Measure | None,
    qrels: Mapping[str, Mapping[str, int]],
) -> Iterator[Message]:
    """A notice for each retriever that finds nothing for many queries, or what it would find for any other query.

    The second is told by labels: its lists have a mean no better than for the labels of the next query.
    """
    masked, count = table.at_depth(config.depths), len(table.queries)
    own = [qrels.get(query, {}) for query in table.queries]
    others = dict(zip(table.queries, own[1:] + own[:1], strict=True))
    for name in sorted(CANDIDATE_RETRIEVERS & config.effective.retrievers & masked.columns.keys()):
        silent = int((count_rows(masked, ~np.isnan(masked.columns[name])) == 0).sum())
        facts: dict[str, Fact] = {"labels": [label], "signal": name, "queries": count}
        if silent >= max(2, MIN_SILENT_SHARE * count):
            why = {"bm25": "any", "vector": "vectors"}.get(name, "strict")
            yield Message("silent", {**facts, "silent": silent, why: True})
        # A list of half of the notes suits any query.
        elif measure and count >= MIN_ACCIDENTAL and all(own) and 2 * (measure.cutoff or 0) <= len(masked.entries):
            ranked = replay(masked, config.with_strategy(parse_strategy(name))).ranked
            found, strange = (evaluate_lists(ranked, each, [measure])[measure] for each in (qrels, others))
            gain = found - strange
            if gain.mean() <= 2 * gain.std() / np.sqrt(count):
                yield Message("accidental", {**facts, "metric": str(measure), "value": float(found.mean())})


def merged(notices: Iterable[Message]) -> Iterator[Message]:
    """The notices, those on retrievers first, one for all contenders of which the same is said.

    Of sums of scores of different ranges it is the same, and the scores are those of the first contender.
    """
    found: dict[tuple[object, ...], Message] = {}
    for at, one in enumerate(notices):
        alike = one.key in DEAD or one.key == "apart"
        facts = [one.facts[name] for name in one.facts if name not in ("labels", "reached")] if alike else [at]
        first = found.setdefault((one.key, *facts), one)
        if first is not one:
            labels = [*first.facts["labels"], *one.facts["labels"]]  # type: ignore[misc]  # texts
            found[one.key, *facts] = Message(one.key, {**first.facts, "labels": labels})
    return iter(sorted(found.values(), key=lambda one: one.key not in DEAD))


MAX_SCALE_RATIO = 2.0


def of_configuration(
    row: Contender,
    table: SignalTable,
    progress: ProgressSummary | None,
    dataset: Dataset,
    model: str,
    measure: Measure | None,
) -> Iterator[Message]:
    """Notices on one configuration and its recording; with a measure also those on the scales of its sums.

    A layered search may have had to do without abstracts, and a floor may have been measured on another scale than
    the one that it is used on.
    """
    yield from dead(row.label, row.config, table, measure, dataset.qrels)
    if progress and progress["full_search"]:
        counts: dict[str, Fact] = {"count": progress["full_search"], "queries": progress["queries"]}
        yield Message("no_abstract", {"label": row.label, **counts})
    measured = row.config.provenance.get("floor", {})
    then = measured.get("model")
    moved = bool(then) and then != model
    changed = measured.get("dataset_sha256") not in (None, "", dataset.sha256)
    if moved or changed:
        facts: dict[str, Fact] = {"label": row.label, "both": moved and changed, "changed": changed}
        yield Message("other_scale", facts | ({"now": model, "then": str(then)} if moved else {}))
    if measure is not None:
        yield from of_scales(row, table, dataset, measure)


def of_scales(row: Contender, table: SignalTable, dataset: Dataset, measure: Measure) -> Iterator[Message]:
    """Notices on the scales of what was written by hand: systems have those of their documents."""
    if row.kind == "system":
        return
    yield from weightless(row.label, row.config, table)
    if row.config.provenance:  # a scale that tuning chose was better on its labels
        return
    # Sums that add scores of different ranges, with the metric before and after, where labels tell.
    config, masked = row.config, table.at_depth(row.config.depths)
    raw = {node: reach for node in _sums(config.effective) if (reach := _apart(node, masked))}
    if not raw:
        return
    reached = [f"{name} up to {most:.3g}" for name, most in next(iter(raw.values())).items()]
    cases = {intent: _with_minmax(case, raw) for intent, case in config.by_intent.items()}
    scaled = replace(config, strategy=_with_minmax(config.strategy, raw), by_intent=cases)
    after = _mean_if_labelled(table, dataset.qrels, measure, scaled)
    before = None if after is None else _mean_if_labelled(table, dataset.qrels, measure, config)
    label = row.label if before is None else f"{row.label} {before:.3f} -> {after:.3f}"
    told: dict[str, Fact] = {"unmeasured": True} if before is None else {"metric": str(measure)}
    yield Message("apart", {"labels": [label], "reached": reached, **told})


def weightless(label: str, config: SearchConfig, table: SignalTable) -> Iterator[Message]:
    """A notice for each term without a positive score in half the queries that have it, and more."""
    masked = table.at_depth(config.depths)
    for node in _sums(config.effective):
        rows = node.members(masked, node.everywhere(masked))
        for expr in _weighed_terms(node, masked) if node.normalize == "max" else ():
            column, present = nested(expr, masked, rows)
            found = count_rows(masked, present) > 0
            none = found & (per_query(masked, present, np.maximum, column.values, 0.0) <= 0)
            without, of = int(none.sum()), int(found.sum())
            if 0 < of <= 2 * without:
                yield Message("weightless", {"label": label, "term": str(expr), "without": without, "of": of})


def _sums(expr: Expr) -> Iterator[NormalizedSum]:
    if isinstance(expr, NormalizedSum):
        yield expr
    for child in expr.children:
        yield from _sums(child)


def _with_minmax(expr: Expr, raw: dict[NormalizedSum, dict[str, float]]) -> Expr:
    if isinstance(expr, NormalizedSum) and expr in raw:
        return replace(expr, normalize="minmax")
    return expr.with_children([_with_minmax(child, raw) for child in expr.children])


def _weighed_terms(node: NormalizedSum, table: SignalTable) -> Iterator[Expr]:
    weighed = [term.expr for term in node.terms if term.weight]
    yield from (expr for expr in weighed if expr.signals & FETCHED <= table.columns.keys())


def _apart(node: NormalizedSum, table: SignalTable) -> dict[str, float]:
    """The largest score of each signal of a raw sum; empty where they are alike, or all in 0..1 by formula."""
    rows = node.members(table, node.everywhere(table))
    reach: dict[str, float] = {}
    for expr in _weighed_terms(node, table) if node.normalize == "none" else ():
        if isinstance(expr, Signal):
            column, present = nested(expr, table, rows)
            reach[str(expr)] = float(np.abs(column.values[present]).max(initial=0.0))
    known = [most for most in reach.values() if most > 0]
    unbounded = any(name not in BOUNDED or name in table.others_places for name in reach)
    return reach if unbounded and known and max(known) > MAX_SCALE_RATIO * min(known) else {}


def _mean_if_labelled(
    table: SignalTable, qrels: Mapping[str, Mapping[str, int]], measure: Measure, config: SearchConfig
) -> float | None:
    if not all(qrels.get(query) for query in table.queries):
        return None
    (values,) = evaluate_lists(replay(table, config).ranked, qrels, [measure]).values()
    return float(values.mean())
