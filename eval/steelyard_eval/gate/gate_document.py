"""The document of a gate: the verdict in a sentence, every contender, and how far to trust the gate itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import ConfigError, visible
from steelyard.fusion import parse_strategy
from steelyard_eval.common.answer import NAMED as CLIPPED
from steelyard_eval.common.answer import Conclusion, Step
from steelyard_eval.common.configurations import Named, written_as
from steelyard_eval.common.documents.gate import (
    FindingRecord,
    GateDocument,
    GatedRecord,
    GateHead,
    TrustPart,
)
from steelyard_eval.common.markup import clip, counted
from steelyard_eval.compare.lists import ties
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.named import Naming
from steelyard_eval.datasets.states import NAMED, State, moved
from steelyard_eval.decide.provenance import tuned_here
from steelyard_eval.decide.steps import labelled_as, labelling
from steelyard_eval.decide.wording import settings
from steelyard_eval.gate.baseline import Baseline, tool
from steelyard_eval.gate.contest import ORDER, Contest
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.select import intents_of
from steelyard_eval.result.sentences import dialect, say

COUNTED = {"false answers": "questions that nothing answers", "stale": "queries"}
"""What more of would settle a finding that counts queries, and says nothing of labels."""
DIGITS = 12
"""Of a hash, where it is to be read; the document has it whole."""
_ELSE = {"corpus": ": its clock (as_of) is another", "queries": ": their intents, dates, groups or tags"}
"""What changed where entries, or texts and filters of queries, are the same."""


@dataclass(frozen=True)
class GateSetup:
    """What was gated: the data set, the baseline, and the settings of the gate.

    `rebaseline` is the command that writes a new baseline.
    """

    dataset: Dataset
    path: Path
    baseline: Baseline
    budget: float
    rebaseline: str


def document(gate: GateSetup, contests: Sequence[Contest]) -> GateDocument:
    """The JSON document of a gate that could compare."""
    rows = [contest.record() for contest in contests]
    verdict = min((contest.verdict for contest in contests), key=ORDER.index)
    checks = {contest.check for contest in contests}
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


def mismatch(
    gate: GateSetup,
    differing: Mapping[str, tuple[str, str]],
    states: Mapping[str, State],
    other: str | None,
    copy: tuple[Path, int] | None,
) -> GateDocument:
    """The document when baseline and data set cannot be compared.

    `differing` has the baseline's hash and ours of what differs, `states` what the data set holds now; `other` is
    the source of intents that the baseline was written with, where it is another than the data set's, and `copy`
    a file with the labels of the baseline and how many labels of today it lacks.
    """
    words = {name: _what_changed(gate, name, states.get(name, {}), other) for name in differing}
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
    back = [_way_back(gate, copy)] if "labels" in differing else []
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


def _way_back(gate: GateSetup, copy: tuple[Path, int] | None) -> Step:
    """How to have the labels of the baseline again."""
    if copy is not None:
        held, lacks = copy
        again = spelled("judge", gate.dataset, options={"--apply": True})
        out = f" (takes {counted(lacks, 'label')} out; yours come back by {again})" if lacks else ""
        return Step(f"to have the labels of the baseline again{out}", labelled_as(held, gate.dataset))
    place = gate.dataset.path
    file = None if gate.dataset.in_memory else place / qrels_file(FolderReader(place))
    what = word(file) if file and file.is_file() else "the labels"
    kept = "no kept copy has the labels of the baseline"
    return Step(f"else undo the change of {what}, by hand or from version control: {kept}")


def _what_changed(gate: GateSetup, name: str, now: State, other: str | None) -> str:
    """What changed of a part, in words that follow "changed"; nothing for older baselines."""
    if name == "queries" and other:
        return f": the baseline was written with --intents {other}"
    before = gate.baseline.states.get(name, {})
    if before and now:
        return f": {moved(before, now, named=NAMED)}" if before != now else _ELSE.get(name, "")
    return ""


def _head(gate: GateSetup) -> GateHead:
    baseline = gate.baseline
    return {
        "schema_version": 1,
        "kind": "gate",
        "tool": tool(),
        "dataset": {"name": gate.dataset.name, "entries": len(gate.dataset.entries)},
        "split": baseline.split,
        "intents": intents_of(gate.dataset),
        "dialect": dialect(ties(kept.kind for kept in baseline.contenders)),
        "budget": gate.budget,
        "baseline": {
            "path": str(gate.path),
            "date": baseline.date,
            "because": baseline.because,
            "tool": baseline.tool,
            "hashes": dict(baseline.hashes),
        },
        "rebaseline": gate.rebaseline,
    }


def _trust(gate: GateSetup, rows: Sequence[GatedRecord]) -> TrustPart:
    """The gate's own error rates, those of the worst contender."""
    return {
        "false_alarm_rate": max(row["power"]["false_alarms"] for row in rows),
        "power": {
            "drop": gate.budget,
            "least": min(row["power"]["caught"] for row in rows),
            "asleep": [row["label"] for row in rows if row["power"]["asleep"]],
        },
    }


def sentence(verdict: str, contests: Sequence[Contest]) -> str:
    """What was found, in one sentence."""
    deciding = [contest for contest in contests if contest.verdict == verdict]
    changed = [contest for contest in deciding if contest.findings[0]["kind"] not in ("unchanged", "identity")]
    if verdict == "pass" and not changed:
        names = _short(contests[0].now.label) if len(contests) == 1 else f"{len(contests)} contenders"
        return f"Pass: no list of {names} changed."
    first, *rest = changed if verdict == "pass" else deciding
    more = f" (and {len(rest)} more)" if rest else ""
    return f"{verdict.capitalize()}: {_short(first.now.label)}: {first.headline}{more}."


def to_do(gate: GateSetup, verdict: str, contests: Sequence[Contest]) -> tuple[Step, ...]:
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


def _settling(gate: GateSetup, contests: Sequence[Contest]) -> Iterator[Step]:
    """What would settle what is inconclusive: labels, where quality is; else how to accept it, and what to add."""
    pairs = [(finding, contest) for contest in contests for finding in contest.findings]
    open_ = {finding["kind"]: contest for finding, contest in pairs if finding["verdict"] == "inconclusive"}
    if not open_.keys() <= COUNTED.keys():
        yield labelling(gate.dataset, None, "")
        return
    same = all(contest.now.asked.written == contest.kept.written for contest in open_.values())
    what = "quality passes, and this is no evidence of a decline; to accept it"
    yield Step(what if same else f"{what}, update the baseline with it", gate.rebaseline if same else "")
    yield Step(f"only more {' and '.join(COUNTED[kind] for kind in open_)} can tell more")


def _tuned(gate: GateSetup, contest: Contest) -> list[str]:
    config = contest.now.config
    if not config:
        return []
    return [say(one) for one in tuned_here(contest.now.label, config, gate.dataset, contest.queries)]


def _formula_before(contest: Contest) -> str:
    """The formula that the baseline was written with, where that is another one and all that differs.

    Lists have none; and a formula alone has no settings.
    """
    before, config = contest.kept.strategy, contest.now.config
    if config is None or settings(config) or contest.kept.settings:
        return ""
    try:
        parse_strategy(before)
    except ConfigError:
        return ""
    return before if before != contest.now.strategy else ""


def _explaining(gate: GateSetup, query: str, contest: Contest, before: str) -> str:
    """The command that explains a query of what is gated, held against a formula `before` unless that is empty.

    Lists alone, and what no command names, have none.
    """
    contender, written = contest.now.asked.one, contest.now.asked.written
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
