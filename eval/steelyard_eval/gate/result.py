"""What a gate found, as a `Result`: the contenders now and in the baseline, the findings, what the rule saw."""

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import asdict

from steelyard_eval.common.configurations import USUAL_LIMIT, NamedConfig, written_as
from steelyard_eval.compare.lists_and_latency import ties
from steelyard_eval.datasets.dataset import MAX_NAMED_IDS, changed_ids
from steelyard_eval.datasets.groups import nearly
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate.comparison import ORDER, BaselineComparison
from steelyard_eval.gate.rule import NAMES, Values
from steelyard_eval.gate.setup import Gate, platform_name
from steelyard_eval.recording.next_steps import label_more_step, settings, words_of
from steelyard_eval.recording.provenance import TOOL, overlap_notice
from steelyard_eval.recording.replay import facts_of, intents_of
from steelyard_eval.result import structs

SHOWN_LOST_QUERIES = 3
UNCHANGED = ("gate_unchanged", "gate_identity")
RULE = [
    *("contender", "side", "verdict", "decided_by", "change", "worse", "composite"),
    *("p_worse", "p_better", "p_ndcg", "upper", "limit"),
]
CHECK = ["contender", "check", "units", "lists_changed", "scores_changed", "detection_rate", "false_alarms"]
COUNTED = {"gate_false_answers": "questions", "gate_stale": "queries"}
"""What more of would settle a finding that counts queries, and says nothing of labels."""
_ELSE = {"corpus": "clock", "queries": "beside"}
"""What changed where entries, or texts and filters of queries, are the same."""


def gated(gate: Gate, compared: Sequence[BaselineComparison]) -> structs.Result:
    """The result of a gate that could compare."""
    verdict = min((one.verdict for one in compared), key=ORDER.index)
    deciding = [one for one in compared if one.verdict == verdict]
    changed = [one for one in deciding if one.findings[0].key not in UNCHANGED]
    first, *rest = (changed if verdict == "pass" else deciding) or deciding
    names = {}
    for one in compared:  # the baseline's own label, unless it takes another one's place
        kept, now = one.baseline, one.now.ref.written
        was = kept.written if now and kept.written and now != kept.written else kept.label
        names[one.now.label] = f"{was} before"
    labels = {name: before if before not in names else f"{before} it" for name, before in names.items()}
    facts: dict[str, structs.Fact] = {"choice": first.now.label, "verdict": verdict}
    if verdict == "pass" and not changed:
        facts |= {"alone": first.now.label} if len(compared) == 1 else {"many": len(compared)}
    else:
        facts |= {**first.headline, "more": len(rest) or None}
    return structs.Result(
        kind="gate",
        answer=structs.Answer(verdict, facts, steps=[*_steps(gate, verdict, compared)]),
        provenance=_provenance(gate, labels[first.now.label]),
        rows=[row for one in compared for row in _rows(one, labels[one.now.label])],
        findings=sorted((of for one in compared for of in one.findings), key=lambda of: ORDER.index(of.verdict)),
        notices=[*_notices(gate, compared)],
        tables=[*_tables(gate, compared)],
        queries=_queries(gate, compared, labels),
    )


def mismatched(gate: Gate) -> structs.Result:
    """The result when baseline and data set cannot be compared."""
    differing = gate.differing
    changed = [
        structs.Finding("gate_changed", {"part": name, **_what_changed(gate, name)}, verdict="mismatch")
        for name in differing
    ]
    digests = [
        structs.Finding("gate_digest", {"part": name, "before": before, "now": now}, verdict="mismatch")
        for name, (before, now) in differing.items()
    ]
    facts: dict[str, structs.Fact] = {"differing": [*differing], "verdict": "mismatch"}
    return structs.Result(
        kind="gate",
        answer=structs.Answer("mismatch", facts, steps=[structs.Step("gate_meant", {}, gate.rebaseline)]),
        provenance=_provenance(gate, ""),
        findings=[*changed, *digests],
        notices=[structs.Message("plain_text", {"text": text}) for text in gate.dataset.notices],
        tables=[_baseline_table(gate)],
    )


def _provenance(gate: Gate, baseline: str) -> structs.Provenance:
    old, dataset = gate.needed(), gate.dataset
    return structs.Provenance(
        tool=TOOL,
        data=facts_of(dataset, len(gate.queries) + len(gate.unanswerable), len(gate.queries)),
        command=gate.command,
        metrics=[*NAMES],
        baseline=baseline,
        split=old.split,
        limit=gate.limit or USUAL_LIMIT,
        model=gate.space.model if gate.baseline and any(kept.limit for kept in old.contenders) else "",
        intents=intents_of(dataset) or "",
        ties=ties(kept.kind for kept in old.contenders),
    )


def _rows(one: BaselineComparison, before: str) -> Iterator[structs.Row]:
    now, kept, config = one.now, one.baseline, one.now.config
    yield structs.Row(
        label=now.label,
        kind=now.ref.one.kind,
        strategy=now.strategy,
        means=_means(now.values),
        system=config.system if config else None,
        profile=config.profile if config else None,
        settings=settings(config) if config else None,
        gain=one.gain(kept.values).shown(-1.0),
    )
    yield structs.Row(before, kept.kind, kept.strategy, _means(kept.values), settings=kept.settings)
    if any(row.anchor is not None for row in kept.lists):
        yield structs.Row(f"{now.label}, anchor of {kept.anchor_date}", kept.kind, "", _means(kept.anchor))


def _means(values: Values) -> dict[str, structs.Estimate]:
    means = zip(NAMES, values.matrix.mean(axis=1).tolist(), strict=True)
    return {name: structs.Estimate(mean) for name, mean in means}


def _notices(gate: Gate, compared: Sequence[BaselineComparison]) -> Iterator[structs.Message]:
    if gate.platform_differs:
        yield structs.Message("gate_platform", {"here": platform_name(), "there": gate.needed().platform})
    then, model = gate.baseline.embedder if gate.baseline else None, gate.space.model
    if then == "auto" and gate.embedder:
        then = gate.opened(then).model
    if then and gate.embedder not in (None, then) and model != then:
        yield structs.Message("gate_model", {"now": model or "none", "then": then})
    yield from (structs.Message("plain_text", {"text": text}) for text in gate.dataset.notices)
    yield from nearly(gate.queries)
    for one in compared:
        yield from one.now.notices
        if config := one.now.config:
            yield from overlap_notice(one.now.label, config, gate.dataset, gate.queries)


def _tables(gate: Gate, compared: Sequence[BaselineComparison]) -> Iterator[structs.Table]:
    queries, by_label = len(gate.queries), {one.now.label: one for one in compared}
    caught = {label: one.power for label, one in by_label.items()}
    asleep = [label for label, power in caught.items() if power.low]
    failed = any(one.verdict == "fail" for one in compared)
    trust: dict[str, structs.Fact] = {
        "of": queries,
        "drop": gate.budget,
        "least": None if failed else min(power.detection_rate for power in caught.values()),
        "false_alarms": max(power.false_alarms for power in caught.values()),
        "several": len(compared) > 1,
        "asleep": not failed and len(asleep) == len(compared),
        "asleep_of": asleep if not failed and 0 < len(asleep) < len(compared) else None,
    }
    changes = [one.gain(one.baseline.values).shown(-1.0) for one in compared]
    moved_rows: list[list[structs.Cell]] = [
        [one.now.label, one.verdict, change, int(one.top10_changed.sum())]
        for one, change in zip(compared, changes, strict=True)
    ]
    yield structs.Table("gated", ["contender", "verdict", "change", "top10_changed"], moved_rows, trust)
    made = {
        "lost": (["contender", "query", "text", "before", "now"], _most_lost_queries),
        "gate_slices": (["contender", "slice", "value", "queries", "fall", "p_by_slice", "fell"], _slices),
        "gate_rule": (RULE, _rulings),
        "gate_broken": (["contender", "promise", "query", "entries"], lambda one: one.newly_broken),
        "gate_check": (CHECK, _checked),
    }
    for key, (columns, rows_of) in made.items():
        if rows := [[one.now.label, *row] for one in compared for row in rows_of(one)]:
            yield structs.Table(key, columns, rows)
    yield _baseline_table(gate)


def _most_lost_queries(one: BaselineComparison) -> Iterator[list[structs.Cell]]:
    before, now = one.baseline.values.ndcg, one.now.values.ndcg
    if one.verdict != "pass" or any(row.worse for row in one.slices):
        for at in one.worst()[:SHOWN_LOST_QUERIES]:
            query = one.gate.queries[at]
            yield [query.id, query.text, float(before[at]), float(now[at])]


def _slices(one: BaselineComparison) -> Iterator[list[structs.Cell]]:
    for row in one.slices:
        yield [row.field, row.value, row.queries, row.findings.ndcg, row.p, "worse" if row.worse else None]


def _rulings(one: BaselineComparison) -> Iterator[list[structs.Cell]]:
    """What the rule saw beside the baseline and beside the anchor; infinite bounds are not known."""
    kept = one.baseline
    sides = ("baseline", one.against_baseline, kept.values), ("anchor", one.against_anchor, kept.anchor)
    for name, found, before in sides:
        gain = one.gain(before)
        ends = (bound if math.isfinite(bound) else None for bound in (found.upper, found.limit))
        decided: list[structs.Cell] = [name, found.verdict, found.decided_by, gain.shown(-1.0), gain.worse]
        yield [*decided, found.composite, found.p_worse, found.p_better, found.p_ndcg, *ends]


def _checked(one: BaselineComparison) -> Iterator[list[structs.Cell]]:
    counts = len(set(one.gate.unit.tolist())), int(one.lists_changed.sum()), int(one.scores_changed.sum())
    rates = one.power.detection_rate, one.power.false_alarms
    yield ["identity" if one.identical else "quality", *counts, *rates]


def _baseline_table(gate: Gate) -> structs.Table:
    old = gate.needed()
    facts = {"file": str(gate.path), "date": old.date, "reason": old.reason, "tool": old.tool}
    facts |= asdict(old.hashes)
    return structs.Table("gate_file", [*facts], [[*facts.values()]])


def _queries(
    gate: Gate, compared: Sequence[BaselineComparison], labels: Mapping[str, str]
) -> list[structs.QueryRow]:
    values = {one.now.label: one.now.values.ndcg.tolist() for one in compared}
    values |= {labels[one.now.label]: one.baseline.values.ndcg.tolist() for one in compared}
    lists: dict[int, dict[str, structs.Listed]] = {}
    for one in compared:
        for at in one.worst():
            before, now = structs.Listed(one.baseline.lists[at].ids), structs.Listed(one.now.first[at])
            lists.setdefault(at, {}).update({one.now.label: now, labels[one.now.label]: before})
    by_query = [{label: own[at] for label, own in values.items()} for at in range(len(gate.queries))]
    return [
        structs.QueryRow(query.id, query.text, query.category, query.group, by_query[at], lists.get(at, {}))
        for at, query in enumerate(gate.queries)
    ]


def _what_changed(gate: Gate, name: str) -> dict[str, structs.Fact]:
    """What changed of a part of the data; nothing for older baselines, which do not say what they held."""
    before, now = gate.needed().states.get(name, {}), gate.states().get(name, {})
    if before and now and before != now:
        return {"moved": changed_ids(before, now, named=MAX_NAMED_IDS)}
    return {_ELSE[name]: True} if before and now and name in _ELSE else {}


def _steps(gate: Gate, verdict: str, compared: Sequence[BaselineComparison]) -> Iterator[structs.Step]:
    if verdict == "fail":
        lost = ((one, at) for one in compared if one.verdict == verdict for at in one.worst()[:1])
        steps = (_explaining(one, at) for one, at in lost)
        yield from [step for step in steps if step][:1]
    elif verdict == "mismatch":
        yield structs.Step("gate_platform_baseline", {}, gate.rebaseline)
    elif verdict == "inconclusive":  # labels settle it where quality is; else how to accept it, and what to add
        pairs = [(finding, one) for one in compared for finding in one.findings]
        open_ = {finding.key: one for finding, one in pairs if finding.verdict == "inconclusive"}
        if not open_.keys() <= COUNTED.keys():
            yield from label_more_step(gate.dataset, None)
            return
        same = all(one.now.ref.written == one.baseline.written for one in open_.values())
        yield structs.Step("gate_accept", {"other": not same}, gate.rebaseline if same else [])
        yield structs.Step("gate_only_more", {**{COUNTED[key]: True for key in open_}, "both": len(open_) > 1})


def _explaining(one: BaselineComparison, at: int) -> structs.Step | None:
    """Explain a query of what is gated; lists alone, and what no command names, have no command."""
    gate, contender, written = one.gate, one.now.ref.one, one.now.ref.written
    if not isinstance(contender, NamedConfig):
        return None
    named = contender.word
    if named is None and written:  # a weights file that the baseline names
        named = written_as(contender.label, Naming.of_baseline(gate.path).of_kind(contender.kind, written))
    if not named:
        return None
    query = gate.queries[at].id
    command = words_of("explain", gate.dataset, query, named, options={})
    return structs.Step("gate_see_why", {"query": query}, command) if command else None
