"""The document of a gate: the verdict in a sentence, every contender, and how far to trust the gate itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from steelyard.base.errors import ConfigError, visible
from steelyard.fusion import parse_strategy
from steelyard_eval.common.answer import NAMED as CLIPPED
from steelyard_eval.common.answer import Conclusion, Step
from steelyard_eval.common.configurations import Named, written_as
from steelyard_eval.common.documents.gate import (
    AgainstRecord,
    FindingRecord,
    GatedConfiguration,
    GatedMetric,
    GateDocument,
    GatedRecord,
    GateHead,
    TrustPart,
)
from steelyard_eval.common.markup import clip, counted
from steelyard_eval.compare.comparison_document import dialect
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.named import Naming
from steelyard_eval.datasets.states import NAMED, State, moved
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.provenance import tuned_here
from steelyard_eval.decide.steps import labelled_as, labelling
from steelyard_eval.decide.wording import settings
from steelyard_eval.gate.baseline import tool
from steelyard_eval.gate.comparison import ORDER, BaselineComparison
from steelyard_eval.gate.lists import ContenderLists
from steelyard_eval.gate.rule import Findings
from steelyard_eval.gate.setup import Gate
from steelyard_eval.gate.values import NAMES, Values
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.select import intents_of

ANOTHER = "another platform than the baseline's"
COUNTED = {"false answers": "questions that nothing answers", "stale": "queries"}
"""What more of would settle a finding that counts queries, and says nothing of labels."""
DIGITS = 12
"""Of a hash, where it is to be read; the document has it whole."""
_ELSE = {"corpus": ": its clock (as_of) is another", "queries": ": their intents, dates, groups or tags"}
"""What changed where entries, or texts and filters of queries, are the same."""


def document(gate: Gate, contests: Sequence[BaselineComparison]) -> GateDocument:
    """The JSON document of a gate that could compare."""
    rows = [_record(contest) for contest in contests]
    verdict = min((contest.verdict for contest in contests), key=ORDER.index)
    checks = {("identity" if contest.identical else "quality") for contest in contests}
    findings: list[FindingRecord] = [
        {"contender": contest.now.label, **finding} for contest in contests for finding in contest.findings
    ]
    return {
        **_head(gate),
        "verdict": verdict,
        **Conclusion(sentence(verdict, contests), to_do(gate, verdict, contests)).to_json(),
        "check": "identity" if checks == {"identity"} else "quality",
        "findings": sorted(findings, key=lambda finding: ORDER.index(finding["verdict"])),
        **_trust(gate, rows),
        "contenders": rows,
        "notices": [
            *gate.dataset.notices,
            *(notice for row in rows for notice in row["notices"]),
            *(notice for contest in contests for notice in _tuned(gate, contest)),
        ],
    }


def mismatch(gate: Gate) -> GateDocument:
    """The document when baseline and data set cannot be compared."""
    differing, states = gate.differing, gate.states()
    words = {name: _what_changed(gate, name, states.get(name, {})) for name in differing}
    texts = {name: f"the {name} changed{words[name]}" for name in differing}
    texts["digests"] = "; ".join(
        f"{name} {before[:DIGITS]} in the baseline, {now[:DIGITS]} now"
        for name, (before, now) in differing.items()
    )
    findings: list[FindingRecord] = [
        {"contender": None, "kind": name, "verdict": "mismatch", "text": text} for name, text in texts.items()
    ]
    findings[-1]["digests"] = {name: {"before": before, "now": now} for name, (before, now) in differing.items()}
    what = " and ".join(differing)
    back = [_way_back(gate)] if "labels" in differing else []
    return {
        **_head(gate),
        "verdict": "mismatch",
        **Conclusion(
            f"Mismatch: the {what} changed since the baseline was written, so search cannot be compared with it.",
            (Step("if that is meant", gate.rebaseline), *back),
        ).to_json(),
        "check": None,
        "findings": findings,
        "false_alarm_rate": None,
        "power": None,
        "contenders": [],
        "notices": list(gate.dataset.notices),
    }


def _way_back(gate: Gate) -> Step:
    """How to have the labels of the baseline again."""
    if (copy := gate.copy_of_labels()) is not None:
        held, lacks = copy
        again = spelled("judge", gate.dataset, options={"--apply": True})
        out = f" (takes {counted(lacks, 'label')} out; yours come back by {again})" if lacks else ""
        return Step(f"to have the labels of the baseline again{out}", labelled_as(held, gate.dataset))
    place = gate.dataset.path
    file = None if gate.dataset.in_memory else place / qrels_file(FolderReader(place))
    what = word(file) if file and file.is_file() else "the labels"
    kept = "no kept copy has the labels of the baseline"
    return Step(f"else undo the change of {what}, by hand or from version control: {kept}")


def _what_changed(gate: Gate, name: str, now: State) -> str:
    """What changed of a part, in words that follow "changed"; nothing for older baselines."""
    if name == "queries" and (other := gate.written_with()):
        return f": the baseline was written with --intents {other}"
    before = gate.needed().states.get(name, {})
    if before and now:
        return f": {moved(before, now, named=NAMED)}" if before != now else _ELSE.get(name, "")
    return ""


def _head(gate: Gate) -> GateHead:
    baseline = gate.needed()
    return {
        "schema_version": 1,
        "kind": "gate",
        "tool": tool(),
        "dataset": {"name": gate.dataset.name, "entries": len(gate.dataset.entries)},
        "split": baseline.split,
        "intents": intents_of(gate.dataset),
        "dialect": dialect(kept.kind for kept in baseline.contenders),
        "budget": gate.budget,
        "baseline": {
            "path": str(gate.path),
            "date": baseline.date,
            "because": baseline.because,
            "tool": baseline.tool,
            "hashes": asdict(baseline.hashes),
        },
        "rebaseline": gate.rebaseline,
    }


def _trust(gate: Gate, rows: Sequence[GatedRecord]) -> TrustPart:
    """The gate's own error rates, those of the worst contender."""
    return {
        "false_alarm_rate": max(row["power"]["false_alarms"] for row in rows),
        "power": {
            "drop": gate.budget,
            "least": min(row["power"]["caught"] for row in rows),
            "asleep": [row["label"] for row in rows if row["power"]["asleep"]],
        },
    }


def _record(row: BaselineComparison) -> GatedRecord:
    """A contender's part."""
    kept, first, elsewhere = row.baseline, row.findings[0], row.gate.platform_difference
    sides = ("baseline", None, row.against_baseline, kept.values), (
        "anchor", kept.anchor_date, row.against_anchor, kept.anchor,
    )  # fmt: skip
    return {
        **_about(row.now),
        "strategy_before": kept.strategy,
        "settings_before": kept.settings,
        "check": "identity" if row.identical else "quality",
        "verdict": row.verdict,
        "reason": first["kind"],
        "text": row.headline,
        "queries": len(row.gate.queries),
        "units": len(set(row.gate.unit.tolist())),
        "deep": row.deep,
        "touched": float(row.top10_changed.mean()),
        "lists_changed": int(row.lists_changed.sum()),
        "scores_changed": int(row.scores_changed.sum()),
        "metrics": _metrics(row.now.values, kept.values, kept.anchor),
        "against": [_against(row.gain(before), *side) for *side, before in sides],
        "slices": row.slices,
        "broken": row.newly_broken,
        "worst": row.worst(),
        "notices": [*row.now.notices, *([f"{ANOTHER}: {elsewhere}"] if elsewhere else [])],
        "power": row.power.record(),
    }


def _about(now: ContenderLists) -> GatedConfiguration:
    """What a contender is."""
    config = now.config
    about: GatedConfiguration = {
        "label": now.label,
        "kind": now.ref.kind,
        "system": config.system if config else None,
        "profile": config.profile if config else None,
        "strategy": now.strategy,
        "limit": config.limit if config else None,
    }
    return {**about, **settings(config)} if config else about


def _metrics(now: Values, before: Values, anchor: Values) -> list[GatedMetric]:
    rows = zip(NAMES, *(part.matrix.mean(axis=1).tolist() for part in (before, now, anchor)), strict=True)
    return [
        {"metric": name, "before": old, "now": new, "delta": new - old, "anchor": first}
        for name, old, new, first in rows
    ]


def _against(gain: Gain, name: str, date: str | None, found: Findings) -> AgainstRecord:
    low, high = gain.stated(-1.0)
    return {
        "name": name,
        "date": date,
        "verdict": found.verdict,
        "reason": found.reason,
        "delta": gain.mean,
        "low": low,
        "high": high,
        "worse": gain.worse,
        "composite": found.composite,
        "p_worse": found.p_worse,
        "p_better": found.p_better,
        "p_ndcg": found.p_ndcg,
        "upper": _finite(found.upper),
        "limit": _finite(found.limit),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sentence(verdict: str, contests: Sequence[BaselineComparison]) -> str:
    """What was found, in one sentence."""
    deciding = [contest for contest in contests if contest.verdict == verdict]
    changed = [contest for contest in deciding if contest.findings[0]["kind"] not in ("unchanged", "identity")]
    if verdict == "pass" and not changed:
        names = _short(contests[0].now.label) if len(contests) == 1 else f"{len(contests)} contenders"
        return f"Pass: no list of {names} changed."
    first, *rest = changed if verdict == "pass" else deciding
    more = f" (and {len(rest)} more)" if rest else ""
    return f"{verdict.capitalize()}: {_short(first.now.label)}: {first.headline}{more}."


def to_do(gate: Gate, verdict: str, contests: Sequence[BaselineComparison]) -> tuple[Step, ...]:
    """What to do now: look at what lost most, label more, or write a baseline on this platform."""
    if verdict == "fail":
        for contest in contests:
            for lost in contest.worst()[:1] if contest.verdict == verdict else ():
                if command := _explaining(gate, lost["id"], contest, _formula_before(contest)):
                    return (Step(f"see why {visible(lost['id'])} fell most", command),)
        return ()
    if verdict == "inconclusive":
        return tuple(_settling(gate, contests))
    return (Step("for a baseline of this platform", gate.rebaseline),) if verdict == "mismatch" else ()


def _settling(gate: Gate, contests: Sequence[BaselineComparison]) -> Iterator[Step]:
    """What would settle what is inconclusive: labels, where quality is; else how to accept it, and what to add."""
    pairs = [(finding, contest) for contest in contests for finding in contest.findings]
    open_ = {finding["kind"]: contest for finding, contest in pairs if finding["verdict"] == "inconclusive"}
    if not open_.keys() <= COUNTED.keys():
        yield labelling(gate.dataset, None, "")
        return
    same = all(contest.now.ref.written == contest.baseline.written for contest in open_.values())
    what = "quality passes, and this is no evidence of a decline; to accept it"
    yield Step(what if same else f"{what}, update the baseline with it", gate.rebaseline if same else "")
    yield Step(f"only more {' and '.join(COUNTED[kind] for kind in open_)} can tell more")


def _tuned(gate: Gate, contest: BaselineComparison) -> list[str]:
    config = contest.now.config
    return tuned_here(contest.now.label, config, gate.dataset, gate.queries) if config else []


def _formula_before(contest: BaselineComparison) -> str:
    """The formula that the baseline was written with, where that is another one and all that differs.

    Lists have none; and a formula alone has no settings.
    """
    before, config = contest.baseline.strategy, contest.now.config
    if config is None or settings(config) or contest.baseline.settings:
        return ""
    try:
        parse_strategy(before)
    except ConfigError:
        return ""
    return before if before != contest.now.strategy else ""


def _explaining(gate: Gate, query: str, contest: BaselineComparison, before: str) -> str:
    """The command that explains a query of what is gated, held against a formula `before` unless that is empty.

    Lists alone, and what no command names, have none.
    """
    contender, written = contest.now.ref.one, contest.now.ref.written
    if not isinstance(contender, Named):
        return ""
    named = contender.word
    if named is None and written:  # a weights file that the baseline names
        named = written_as(contender.label, Naming.of_baseline(gate.path).of_kind(contender.kind, written))
    if not named:
        return ""
    words, options = ([before], {"--against": named}) if before else ([named], {})
    return spelled("explain", gate.dataset, query, *words, options=options) or ""


def _short(label: str) -> str:
    return clip(visible(label), CLIPPED)
