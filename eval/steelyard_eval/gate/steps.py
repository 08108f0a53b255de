"""What to do after a gate: look at what lost most, label more, accept it, or write another baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard_eval.common.configurations import Named, written_as
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate.comparison import BaselineComparison
from steelyard_eval.gate.setup import Gate
from steelyard_eval.recording.steps import labelling, words_of
from steelyard_eval.result.structs import Step

COUNTED = {"gate_false_answers": "questions", "gate_stale": "queries"}
"""What more of would settle a finding that counts queries, and says nothing of labels."""


def to_do(gate: Gate, verdict: str, compared: Sequence[BaselineComparison]) -> Iterator[Step]:
    """What to do now: look at what lost most, label more, accept it, or write a baseline on this platform."""
    if verdict == "fail":
        lost = ((one, at) for one in compared if one.verdict == verdict for at in one.worst()[:1])
        steps = (_explaining(one, at) for one, at in lost)
        yield from [step for step in steps if step][:1]
    elif verdict == "mismatch":
        yield Step("gate_platform_baseline", {}, gate.rebaseline)
    elif verdict == "inconclusive":
        yield from _settling(gate, compared)


def _settling(gate: Gate, compared: Sequence[BaselineComparison]) -> Iterator[Step]:
    """What would settle what is inconclusive: labels, where quality is; else how to accept it, and what to add."""
    pairs = [(finding, one) for one in compared for finding in one.findings]
    open_ = {finding.key: one for finding, one in pairs if finding.verdict == "inconclusive"}
    if not open_.keys() <= COUNTED.keys():
        yield from labelling(gate.dataset, None)
        return
    same = all(one.now.ref.written == one.baseline.written for one in open_.values())
    yield Step("gate_accept", {"other": not same}, gate.rebaseline if same else [])
    yield Step("gate_only_more", {**{COUNTED[key]: True for key in open_}, "both": len(open_) > 1})


def _explaining(one: BaselineComparison, at: int) -> Step | None:
    """Explain a query of what is gated; lists alone, and what no command names, have no command."""
    gate, contender, written = one.gate, one.now.ref.one, one.now.ref.written
    if not isinstance(contender, Named):
        return None
    named = contender.word
    if named is None and written:  # a weights file that the baseline names
        named = written_as(contender.label, Naming.of_baseline(gate.path).of_kind(contender.kind, written))
    if not named:
        return None
    query = gate.queries[at].id
    command = words_of("explain", gate.dataset, query, named, options={})
    return Step("gate_see_why", {"query": query}, command) if command else None
