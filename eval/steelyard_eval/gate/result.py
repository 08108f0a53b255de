"""What a gate found, as a `Result`: the contenders now and in the baseline, the findings, what the rule saw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import asdict

from steelyard_eval.common.configurations import LIMIT
from steelyard_eval.compare.lists import ties
from steelyard_eval.datasets.states import NAMED, moved
from steelyard_eval.gate.baseline import tool
from steelyard_eval.gate.comparison import ORDER, BaselineComparison
from steelyard_eval.gate.hashes import platform_name
from steelyard_eval.gate.setup import Gate
from steelyard_eval.gate.steps import to_do
from steelyard_eval.gate.values import NAMES, Values
from steelyard_eval.recording.record import tuned_here
from steelyard_eval.recording.replay import intents_of
from steelyard_eval.recording.steps import settings
from steelyard_eval.result.structs import (
    Answer,
    Cell,
    DataFacts,
    Estimate,
    Fact,
    Finding,
    Listed,
    Provenance,
    QueryRow,
    Result,
    Row,
    Said,
    Step,
    Table,
)

SHOWN = 3
"""Queries that lost most, a contender."""
UNCHANGED = ("gate_unchanged", "gate_identity")
_ELSE = {"corpus": "clock", "queries": "beside"}
"""What changed where entries, or texts and filters of queries, are the same."""


def gated(gate: Gate, compared: Sequence[BaselineComparison]) -> Result:
    """The result of a gate that could compare."""
    verdict = min((one.verdict for one in compared), key=ORDER.index)
    deciding = [one for one in compared if one.verdict == verdict]
    changed = [one for one in deciding if one.findings[0].key not in UNCHANGED]
    first, *rest = (changed if verdict == "pass" else deciding) or deciding
    labels = {one.now.label: _before(one, compared) for one in compared}
    facts: dict[str, Fact] = {"choice": first.now.label, "verdict": verdict}
    if verdict == "pass" and not changed:
        facts |= {"alone": first.now.label} if len(compared) == 1 else {"many": len(compared)}
    else:
        facts |= {**first.headline, "more": len(rest) or None}
    return Result(
        kind="gate",
        answer=Answer(verdict, facts, steps=[*to_do(gate, verdict, compared)]),
        provenance=_provenance(gate, labels[first.now.label]),
        rows=[row for one in compared for row in _rows(one, labels[one.now.label])],
        findings=sorted((of for one in compared for of in one.findings), key=lambda of: ORDER.index(of.verdict)),
        notices=[*_notices(gate, compared)],
        tables=[*_tables(gate, compared)],
        queries=_queries(gate, compared, labels),
    )


def mismatched(gate: Gate) -> Result:
    """The result when baseline and data set cannot be compared."""
    differing = gate.differing
    changed = [
        Finding("gate_changed", {"part": name, **_what_changed(gate, name)}, verdict="mismatch")
        for name in differing
    ]
    digests = [
        Finding("gate_digest", {"part": name, "before": before, "now": now}, verdict="mismatch")
        for name, (before, now) in differing.items()
    ]
    return Result(
        kind="gate",
        answer=Answer(
            "mismatch",
            {"differing": [*differing], "verdict": "mismatch"},
            steps=[Step("gate_meant", {}, gate.rebaseline)],
        ),
        provenance=_provenance(gate, ""),
        findings=[*changed, *digests],
        notices=[Said("told", {"text": text}) for text in gate.dataset.notices],
        tables=[_baseline(gate)],
    )


def _before(one: BaselineComparison, compared: Sequence[BaselineComparison]) -> str:
    """The label of a contender as the baseline has it."""
    label = f"{one.now.label} before"
    while any(other.now.label == label for other in compared):
        label += " it"
    return label


def _provenance(gate: Gate, baseline: str) -> Provenance:
    old, dataset = gate.needed(), gate.dataset
    judged = len(gate.queries)
    path = None if dataset.in_memory else str(dataset.path)
    about = DataFacts(dataset.name, path, sha256=dataset.sha256, entries=len(dataset.entries), judged=judged)
    return Provenance(
        tool=tool(),
        data=about,
        command=gate.command,
        metrics=[*NAMES],
        baseline=baseline,
        split=old.split,
        limit=gate.limit or LIMIT,
        model=gate.space.model if gate.baseline and any(kept.limit for kept in old.contenders) else "",
        intents=intents_of(dataset) or "",
        ties=ties(kept.kind for kept in old.contenders),
    )


def _rows(one: BaselineComparison, before: str) -> Iterator[Row]:
    """A contender now, in the baseline, and in the anchor where that is an older one."""
    now, kept, config = one.now, one.baseline, one.now.config
    yield Row(
        label=now.label,
        kind=now.ref.kind,
        strategy=now.strategy,
        means=_means(now.values),
        system=config.system if config else None,
        profile=config.profile if config else None,
        settings=settings(config) if config else None,
        gain=one.gain(kept.values).shown(-1.0),
    )
    yield Row(before, kept.kind, kept.strategy, _means(kept.values), settings=kept.settings)
    if any(row.anchor is not None for row in kept.lists):
        yield Row(f"{before} {kept.anchor_date}", kept.kind, "", _means(kept.anchor))


def _means(values: Values) -> dict[str, Estimate]:
    return {name: Estimate(mean) for name, mean in zip(NAMES, values.matrix.mean(axis=1).tolist(), strict=True)}


def _notices(gate: Gate, compared: Sequence[BaselineComparison]) -> Iterator[Said]:
    yield from (Said("told", {"text": text}) for text in gate.dataset.notices)
    for one in compared:
        yield from one.now.notices
        if config := one.now.config:
            yield from tuned_here(one.now.label, config, gate.dataset, gate.queries)
        if _is_open(one):
            yield from _rewritten(one)
    if gate.elsewhere:
        yield Said("gate_platform", {"here": platform_name(), "there": gate.needed().platform})


def _is_open(one: BaselineComparison) -> bool:
    """Whether something of it is not fine."""
    return one.verdict != "pass" or any(row.worse for row in one.slices)


def _rewritten(one: BaselineComparison) -> Iterator[Said]:
    """The formula of the baseline and today's, each with its settings where both are known, if they differ."""
    kept, config = one.baseline, one.now.config
    known = kept.settings is not None
    before = kept.strategy, (kept.settings or None) if known else None
    now = one.now.strategy, (settings(config) if config else None) if known else None
    if kept.strategy and one.now.strategy and before != now:
        names = "before", "before_with", "now", "now_with"
        yield Said("gate_rewritten", {"label": one.now.label, **dict(zip(names, (*before, *now), strict=True))})


def _tables(gate: Gate, compared: Sequence[BaselineComparison]) -> Iterator[Table]:
    queries, by_label = len(gate.queries), {one.now.label: one for one in compared}
    caught = {label: one.power for label, one in by_label.items()}
    asleep = [label for label, power in caught.items() if power.low]
    trust: dict[str, Fact] = {
        "of": queries,
        "drop": gate.budget,
        "least": min(power.detection_rate for power in caught.values()),
        "false_alarms": max(power.false_alarms for power in caught.values()),
        "several": len(compared) > 1,
        "asleep": len(asleep) == len(compared),
        "asleep_of": asleep if 0 < len(asleep) < len(compared) else None,
    }
    changes = [one.gain(one.baseline.values).shown(-1.0) for one in compared]
    moved_rows: list[list[Cell]] = [
        [one.now.label, one.verdict, change, int(one.top10_changed.sum())]
        for one, change in zip(compared, changes, strict=True)
    ]
    yield Table("gated", ["contender", "verdict", "change", "top10_changed"], moved_rows, trust)
    yield from _table("lost", ["contender", "query", "text", "before", "now"], map(_lost, compared))
    yield from _table(
        "gate_slices",
        ["contender", "slice", "value", "queries", "fall", "p_by_slice", "fell"],
        map(_slices, compared),
    )
    yield from _table("gate_rule", RULE, map(_rulings, compared))
    yield from _table("gate_broken", ["contender", "promise", "query", "entries"], map(_broken, compared))
    yield from _table("gate_check", CHECK, map(_checked, compared))
    yield _baseline(gate)


def _table(key: str, columns: list[str], rows: Iterator[Iterator[list[Cell]]]) -> Iterator[Table]:
    if made := [row for part in rows for row in part]:
        yield Table(key, columns, made)


def _lost(one: BaselineComparison) -> Iterator[list[Cell]]:
    """The queries that lost most, where something is not fine."""
    if not _is_open(one):
        return
    before, now = one.baseline.values.ndcg, one.now.values.ndcg
    for at in one.worst()[:SHOWN]:
        query = one.gate.queries[at]
        yield [one.now.label, query.id, query.text, float(before[at]), float(now[at])]


def _slices(one: BaselineComparison) -> Iterator[list[Cell]]:
    for row in one.slices:
        size = int(row.inside.sum())
        yield [one.now.label, row.field, row.value, size, row.found.ndcg, row.p, "worse" if row.worse else None]


RULE = [
    *("contender", "side", "verdict", "reason", "change", "worse", "composite"),
    *("p_worse", "p_better", "p_ndcg", "upper", "limit"),
]


def _rulings(one: BaselineComparison) -> Iterator[list[Cell]]:
    """What the rule saw beside the baseline and beside the anchor; infinite bounds are not known."""
    kept = one.baseline
    sides = ("baseline", one.against_baseline, kept.values), ("anchor", one.against_anchor, kept.anchor)
    for name, found, before in sides:
        gain, bounds = one.gain(before), (found.upper, found.limit)
        ps = found.p_worse, found.p_better, found.p_ndcg
        ends = (bound if math.isfinite(bound) else None for bound in bounds)
        decided: list[Cell] = [one.now.label, name, found.verdict, found.reason, gain.shown(-1.0), gain.worse]
        yield [*decided, found.composite, *ps, *ends]


def _broken(one: BaselineComparison) -> Iterator[list[Cell]]:
    for promise, query, entries in one.newly_broken:
        yield [one.now.label, promise, query, entries]


CHECK = ["contender", "check", "units", "lists_changed", "scores_changed", "detection_rate", "false_alarms"]


def _checked(one: BaselineComparison) -> Iterator[list[Cell]]:
    counts = len(set(one.gate.unit.tolist())), int(one.lists_changed.sum()), int(one.scores_changed.sum())
    rates = one.power.detection_rate, one.power.false_alarms
    yield [one.now.label, "identity" if one.identical else "quality", *counts, *rates]


def _baseline(gate: Gate) -> Table:
    """The file that was gated against."""
    old = gate.needed()
    facts = {
        "file": str(gate.path),
        "date": old.date,
        "because": old.because,
        "tool": old.tool,
        **asdict(old.hashes),
    }
    return Table("gate_file", [*facts], [[*facts.values()]])


def _queries(gate: Gate, compared: Sequence[BaselineComparison], labels: Mapping[str, str]) -> list[QueryRow]:
    """Every query with nDCG@10 of both sides, and with both lists where it lost most."""
    values = {one.now.label: one.now.values.ndcg.tolist() for one in compared}
    values |= {labels[one.now.label]: one.baseline.values.ndcg.tolist() for one in compared}
    lists: dict[int, dict[str, Listed]] = {}
    for one in compared:
        for at in one.worst():
            before, now = Listed(one.baseline.lists[at].ids), Listed(one.now.first[at])
            lists.setdefault(at, {}).update({one.now.label: now, labels[one.now.label]: before})
    return [
        QueryRow(
            query.id,
            query.text,
            query.category,
            query.group,
            {label: own[at] for label, own in values.items()},
            lists.get(at, {}),
        )
        for at, query in enumerate(gate.queries)
    ]


def _what_changed(gate: Gate, name: str) -> dict[str, Fact]:
    """What changed of a part of the data; nothing for older baselines, which do not say what they held."""
    before, now = gate.needed().states.get(name, {}), gate.states().get(name, {})
    if before and now and before != now:
        return {"moved": moved(before, now, named=NAMED)}
    return {_ELSE[name]: True} if before and now and name in _ELSE else {}
