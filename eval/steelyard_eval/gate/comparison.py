"""One contender beside its baseline: equal bits where configuration and code are the same, else equal quality."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec.structs import replace

from steelyard.base.arrays import Bools
from steelyard_eval.common.formatting import tells
from steelyard_eval.compare.result import Succession
from steelyard_eval.gate import rule
from steelyard_eval.gate.baseline import BaselineContender, BaselineList
from steelyard_eval.gate.lists import ContenderLists
from steelyard_eval.gate.setup import Gate, alike, list_hash, scores_hash, settled_hash, sources_hash
from steelyard_eval.measures.paired import TIE, difference_interval
from steelyard_eval.measures.spread import NO_GAIN, Gain, benjamini_hochberg
from steelyard_eval.measures.trec_runs import Scored
from steelyard_eval.result.structs import Fact, Finding

SHOWN_WORST_QUERIES = 10
MIN_SLICE_UNITS = 5
ORDER = ("fail", "mismatch", "inconclusive", "pass")
QUALITY_FINDINGS = ("gate_identity", "gate_differs", "gate_unchanged", "gate_baseline", "gate_anchor")


@dataclass(frozen=True)
class Slice:
    """A category or an intent: how many queries it has, and the rule on them; `p` is None of too few units."""

    field: str
    value: str
    queries: int
    findings: rule.Findings
    p: float | None

    @property
    def worse(self) -> bool:
        """Whether it fell beyond doubt."""
        return self.p is not None and self.p < rule.ALPHA and self.findings.ndcg < -rule.SMALL


@dataclass(frozen=True)
class BaselineComparison:
    """A contender now, and what the baseline keeps of it; lists are in the order of the gate's queries."""

    gate: Gate
    now: ContenderLists
    baseline: BaselineContender

    @cached_property
    def identical(self) -> bool:
        """Whether configuration and sources are the baseline's, so that nothing may differ."""
        made, kept = self.gate.configuration(self.now.config), self.baseline.configuration
        return bool(made) and (made, sources_hash()) == (kept, self.gate.needed().hashes.sources)

    @cached_property
    def lists_changed(self) -> Bools:
        """bool[Q]: whose list, down to place 100, differs; on another platform by more than ties."""
        return np.array(
            [
                list_hash(*lists) != kept.list_hash
                and not (self.gate.platform_differs and settled_hash(lists, kept.ties) == kept.settled_hash)
                for lists, kept in self._rows
            ]
        )

    @cached_property
    def scores_changed(self) -> Bools:
        """bool[Q]: whose scores differ in any bit; on another platform the first ten by more than rounding."""
        if self.gate.platform_differs:
            return np.array([not alike(listed[: rule.SHALLOW], kept.first) for (listed, _), kept in self._rows])
        return np.array([scores_hash(*lists) != kept.scores_hash for lists, kept in self._rows])

    @cached_property
    def top10_changed(self) -> Bools:
        """bool[Q]: whose first ten places differ."""
        pairs = zip(self.now.first, self.baseline.lists, strict=True)
        return np.array([first != kept.ids for first, kept in pairs]) & self.lists_changed

    @property
    def _rows(self) -> list[tuple[tuple[Sequence[Scored], Sequence[Scored]], BaselineList]]:
        return list(zip(zip(self.now.lists, self.now.deep, strict=True), self.baseline.lists, strict=True))

    @cached_property
    def against_baseline(self) -> rule.Findings:
        """The rule on the differences to the baseline."""
        return self._judged(self.baseline.values)

    @cached_property
    def against_anchor(self) -> rule.Findings:
        """The rule on the differences to the anchor."""
        return self._judged(self.baseline.anchor)

    def _judged(self, before: rule.Values, inside: Bools | slice = slice(None)) -> rule.Findings:
        difference = (self.now.values.matrix - before.matrix)[:, inside]
        whole = rule.composite(difference, before.deep and self.now.values.deep)
        return rule.judge(difference[0], whole, self.gate.unit[inside], self.gate.budget)

    @property
    def power(self) -> rule.Power:
        """How far the gate can be trusted on this contender."""
        both_deep = self.baseline.deep and self.now.values.deep
        return rule.power_of(self.against_baseline, self.gate.budget, both_deep)

    @cached_property
    def newly_broken(self) -> list[tuple[str, str, int]]:
        """Promises that no list of the baseline broke, with the queries that do now, and by how many entries."""
        never_kept = {name for kept in self.baseline.lists for name in kept.broken}
        pairs = zip(self.gate.queries, self.now.broken, strict=True)
        broken = [(name, query.id, count) for query, counts in pairs for name, count in counts.items()]
        return [row for row in broken if row[0] not in never_kept]

    @cached_property
    def findings(self) -> list[Finding]:
        """What there is to say of it, worst first."""
        quality = [self._identity()] if self.identical else [*self._quality()]
        findings = [*self._broken_promises(), *quality, *self._silence(), *self._staleness()]
        ordered = sorted(findings, key=lambda finding: ORDER.index(finding.verdict))
        return [replace(finding, contender=self.now.label) for finding in ordered]

    @property
    def verdict(self) -> str:
        """The worst of the findings."""
        return self.findings[0].verdict

    @property
    def headline(self) -> dict[str, Fact]:
        """What decided, as facts of the answer; whether quality held goes before a finding on anything else."""
        first = self.findings[0]
        beside: dict[str, Fact] = {"held": None if first.key in QUALITY_FINDINGS else self._held}
        beside |= {"change": self.against_baseline.ndcg, "finding": first.key, "tokens": self.gate.tokens}
        return {**first.facts, **beside}

    @property
    def _held(self) -> str:
        ruling = self.against_baseline
        if not self.lists_changed.any():
            return "gate_same"
        if not ruling.fails and not ruling.passes:
            return "gate_open"
        return "gate_fell" if ruling.fails else "gate_rose" if ruling.better else "gate_held"

    def _broken_promises(self) -> Iterator[Finding]:
        if self.newly_broken:
            queries = len({query for _, query, _ in self.newly_broken})
            kinds = sorted({promise for promise, _, _ in self.newly_broken})
            yield Finding("gate_invariant", {"queries": queries, "promises": kinds}, verdict="fail")

    def _silence(self) -> Iterator[Finding]:
        """Answers to questions that have none, and what a floor loses of what it promised."""
        if asked := len(self.gate.unanswerable):
            now, before = self.now.answered, self.baseline.answered
            yield rule.sign_test_increase("gate_false_answers", now, before, asked, self.gate.budget)
        promise = rule.promised(self.now.config.provenance) if self.now.config else None
        if promise is not None and (lost := self.now.lost):
            lost_by = np.array([query.id in lost for query in self.gate.queries])
            yield rule.kept_promise(promise, [*lost.values()], self.gate.unit[lost_by])

    def _staleness(self) -> Iterator[Finding]:
        facts, queries = Succession.of(self.gate.dataset.entries), self.gate.queries
        if facts and self.lists_changed.any():
            clock = self.gate.dataset.clock
            now, before = (
                [query.id for query, ids in zip(queries, lists, strict=True) if facts.stale(ids, clock(query))]
                for lists in (self.now.first, [kept.ids for kept in self.baseline.lists])
            )
            yield rule.sign_test_increase("gate_stale", now, before, len(queries), self.gate.budget)

    def _identity(self) -> Finding:
        lists, scores = int(self.lists_changed.sum()), int(self.scores_changed.sum())
        elsewhere = self.gate.platform_differs
        if not lists and not scores:
            return Finding("gate_identity", {"elsewhere": elsewhere}, verdict="pass")
        facts: dict[str, Fact] = {"queries": lists or scores, "lists": lists > 0, "scores": not lists}
        verdict: Literal["mismatch", "fail"] = "mismatch" if elsewhere else "fail"
        return Finding("gate_differs", {**facts, "elsewhere": elsewhere, "here": not elsewhere}, verdict=verdict)

    def _quality(self) -> Iterator[Finding]:
        before, anchor = self.baseline.values, self.baseline.anchor
        moved = not self.gate.platform_differs and (self.now.values.matrix != before.matrix).any()
        if not self.lists_changed.any() and not moved:
            yield Finding("gate_unchanged", {"scores": int(self.scores_changed.sum()) or None}, verdict="pass")
        else:
            ruling = self.against_baseline
            yield Finding("gate_baseline", self._told(ruling, before), verdict=ruling.verdict)
        # A decline that no single step showed; the baseline is its own anchor until a later one is not better.
        own = all(kept.anchor is None for kept in self.baseline.lists)
        if self.against_anchor.fails and not own:
            facts = {**self._told(self.against_anchor, anchor), "date": self.baseline.anchor_date}
            yield Finding("gate_anchor", facts, verdict="fail")
        if worse := [f"{row.field} {row.value} ({row.findings.ndcg:+.3f})" for row in self.slices if row.worse]:
            yield Finding("gate_slice", {"slices": worse}, verdict="fail" if self.gate.block_slices else "pass")

    def gain(self, before: rule.Values) -> Gain:
        """The change of nDCG@10, with its interval and the odds of a loss; without these where no list changed."""
        difference, units = self.now.values.ndcg - before.ndcg, self.gate.unit.tolist()
        if not (difference.any() or self.lists_changed.any()):
            return NO_GAIN
        return Gain.within(difference_interval(difference, units), len(set(units)))

    def _told(self, found: rule.Findings, before: rule.Values) -> dict[str, Fact]:
        """What the rule found, as facts: the change, and either its interval or what the test rules out."""
        gain = self.gain(before)
        facts: dict[str, Fact] = {"gain": gain.shown(-1.0), "tokens": self.gate.tokens}
        if not (found.fails or found.better):
            upper = max(found.upper, 0.0) if math.isfinite(found.upper) else None
            names = ("excluded", "upper") if found.within else ("open", "reach")
            bounds = dict(zip(names, (self.gate.budget, upper), strict=True))
            return {**facts, **bounds, "bound": rule.BOUND}
        if found.fails and gain.high >= 0:  # the test is of several metrics together
            return {**facts, "p": found.p_worse}
        vague = gain.worse is not None and not tells(gain.low, gain.high)
        return {**facts, "worse": None if vague else gain.worse, "vague": vague}

    @cached_property
    def slices(self) -> list[Slice]:
        """Every category and intent: the rule on it, and its one-sided p, corrected over all slices."""
        parts = [
            (name, value, np.array([getattr(query, name) == value for query in self.gate.queries]))
            for name in ("category", "intent")
            for value in sorted({getattr(query, name) for query in self.gate.queries} - {None, ""})
        ]
        found = [self._judged(self.baseline.values, inside) for *_, inside in parts]
        ps = np.array([one.p_worse if one.free + 1 >= MIN_SLICE_UNITS else np.nan for one in found])
        tested = np.isfinite(ps)
        ps[tested] = benjamini_hochberg(ps[tested])
        return [
            Slice(name, value, int(inside.sum()), one, float(p) if np.isfinite(p) else None)
            for (name, value, inside), one, p in zip(parts, found, ps, strict=True)
        ]

    def worst(self) -> list[int]:
        """The numbers of the queries that lost most nDCG@10."""
        difference = self.now.values.ndcg - self.baseline.values.ndcg
        order = np.argsort(difference, kind="stable").tolist()
        return [query for query in order if difference[query] < -TIE][:SHOWN_WORST_QUERIES]
