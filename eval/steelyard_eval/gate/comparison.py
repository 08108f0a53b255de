"""One contender beside its baseline: equal bits where configuration and code are the same, else equal quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools
from steelyard_eval.common.documents.gate import BrokenPromise, FindingRecord, LostQuery, SliceRecord
from steelyard_eval.common.markup import counted
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.wording import in_words
from steelyard_eval.gate.baseline import BaselineContender, BaselineList
from steelyard_eval.gate.hashes import list_hash, scores_hash, sources_hash
from steelyard_eval.gate.invariants import WORDS
from steelyard_eval.gate.lists import ContenderLists
from steelyard_eval.gate.power import Power, power_of
from steelyard_eval.gate.rule import ALPHA, BOUND, SMALL, Findings, judge
from steelyard_eval.gate.setup import Gate
from steelyard_eval.gate.silence import false_answers, kept_promise, promised, risen
from steelyard_eval.gate.ties import near, settled_hash
from steelyard_eval.gate.values import SHALLOW, Values, composite
from steelyard_eval.measures.corrected import benjamini_hochberg
from steelyard_eval.measures.paired import TIE, difference_interval
from steelyard_eval.measures.runs import Scored

WORST = 10
"""Queries that are shown with both rankings."""
LEAST = 5
"""Units of a slice, below which it is not tested."""
ORDER = ("fail", "mismatch", "inconclusive", "pass")
QUALITY_FINDINGS = ("identity", "unchanged", "baseline", "anchor")
"""Findings that say by themselves whether quality held."""


@dataclass(frozen=True)
class BaselineComparison:
    """A contender now, and what the baseline keeps of it; lists are in the order of the gate's queries."""

    gate: Gate
    now: ContenderLists
    baseline: BaselineContender

    @cached_property
    def identical(self) -> bool:
        """Whether configuration and sources are the baseline's, so that nothing may differ."""
        made = self.gate.configuration(self.now.config)
        return bool(made) and (made, sources_hash()) == (
            self.baseline.configuration,
            self.gate.needed().hashes.sources,
        )

    @cached_property
    def lists_changed(self) -> Bools:
        """bool[Q]: whose list, down to place 100, differs; on another platform by more than ties."""
        return np.array([self._differs(listed, far, kept) for listed, far, kept in self._rows])

    def _differs(self, listed: Sequence[Scored], far: Sequence[Scored], kept: BaselineList) -> bool:
        if list_hash(listed, far) == kept.list_hash:
            return False
        return not self.gate.platform_difference or settled_hash((listed, far), kept.ties) != kept.settled_hash

    @cached_property
    def scores_changed(self) -> Bools:
        """bool[Q]: whose scores differ in any bit; on another platform the first ten by more than rounding."""
        if self.gate.platform_difference:
            return np.array([_far_apart(listed[:SHALLOW], kept.first) for listed, _, kept in self._rows])
        return np.array([scores_hash(listed, far) != kept.scores_hash for listed, far, kept in self._rows])

    @cached_property
    def top10_changed(self) -> Bools:
        """bool[Q]: whose first ten places differ."""
        ids = np.array([[id_ for id_, _ in listed[:SHALLOW]] != kept.ids for listed, _, kept in self._rows])
        return ids & self.lists_changed

    @property
    def _rows(self) -> list[tuple[Sequence[Scored], Sequence[Scored], BaselineList]]:
        return list(zip(self.now.lists, self.now.deep, self.baseline.lists, strict=True))

    @property
    def deep(self) -> bool:
        """Whether both sides have lists of more than ten places."""
        return self.baseline.deep and self.now.values.deep

    @cached_property
    def against_baseline(self) -> Findings:
        """The rule on the differences to the baseline."""
        return self._judged(self.baseline.values)

    @cached_property
    def against_anchor(self) -> Findings:
        """The rule on the differences to the anchor."""
        return self._judged(self.baseline.anchor)

    def _judged(self, before: Values, inside: Bools | slice = slice(None)) -> Findings:
        """The rule on the differences to earlier values, of all queries or of some."""
        difference = (self.now.values.matrix - before.matrix)[:, inside]
        whole = composite(difference, before.deep and self.now.values.deep)
        return judge(difference[0], whole, self.gate.unit[inside], self.gate.budget)

    @property
    def power(self) -> Power:
        """How far the gate can be trusted on this contender."""
        return power_of(self.against_baseline, self.gate.budget, self.deep)

    @cached_property
    def newly_broken(self) -> list[BrokenPromise]:
        """Lists that break a promise that no list of the baseline broke."""
        never_kept = {name for kept in self.baseline.lists for name in kept.broken}
        return [
            {"promise": name, "query": query.id, "entries": count}
            for query, broken in zip(self.gate.queries, self.now.broken, strict=True)
            for name, count in broken.items()
            if name not in never_kept
        ]

    @cached_property
    def findings(self) -> list[FindingRecord]:
        """What there is to say, worst first: kind, verdict, text."""
        quality = [self._identity()] if self.identical else [*self._quality(), *self._slices()]
        findings = [*self._promises(), *quality, *self._silence(), *self._staleness()]
        return sorted(findings, key=lambda finding: ORDER.index(finding["verdict"]))

    @property
    def verdict(self) -> str:
        """The worst of the findings."""
        return self.findings[0]["verdict"]

    @property
    def headline(self) -> str:
        """What was found in a clause; whether quality held goes before a finding on anything else."""
        first = self.findings[0]
        return first["text"] if first["kind"] in QUALITY_FINDINGS else f"{self._held}; {first['text']}"

    @property
    def _held(self) -> str:
        """Whether quality held, in a few words."""
        if not self.lists_changed.any():
            return "no list changed"
        ruling = self.against_baseline
        change = f"{ruling.ndcg:+.3f} nDCG@10"
        if not ruling.fails and not ruling.passes:
            return f"too few queries to tell whether quality held ({change})"
        return f"quality {'fell' if ruling.fails else 'rose' if ruling.better else 'held'} ({change})"

    def _promises(self) -> Iterator[FindingRecord]:
        """Promises that are broken, and were kept before."""
        if self.newly_broken:
            kinds = sorted({row["promise"] for row in self.newly_broken})
            queries = len({row["query"] for row in self.newly_broken})
            what = " and ".join(WORDS[kind] for kind in kinds)
            text = f"{counted(queries, 'query', 'queries')} now return entries {what}; before, none did"
            yield _finding("invariant", "fail", text)

    def _silence(self) -> Iterator[FindingRecord]:
        """Answers to questions that have none, and what a floor loses of what it promised."""
        asked = len(self.gate.unanswerable)
        if found := false_answers(self.now.answered, self.baseline.answered, asked, self.gate.budget):
            yield found
        promise = promised(self.now.config.provenance) if self.now.config else None
        if promise is not None and (lost := self.now.lost):
            lost_by = np.array([query.id in lost for query in self.gate.queries])
            yield kept_promise(promise, [*lost.values()], self.gate.unit[lost_by])

    def _staleness(self) -> Iterator[FindingRecord]:
        facts, queries = self.gate.succession, self.gate.queries
        if facts is None or not self.lists_changed.any():
            return
        now, before = (
            [
                query.id
                for query, ids in zip(queries, lists, strict=True)
                if facts.stale(ids, self.gate.dataset.clock(query))
            ]
            for lists in (
                [[id_ for id_, _ in ranking[:SHALLOW]] for ranking in self.now.lists],
                [kept.ids for kept in self.baseline.lists],
            )
        )
        text = "lists show what was replaced or has expired above what took its place"
        if found := risen("stale", now, before, len(queries), self.gate.budget, text):
            yield found

    def _identity(self) -> FindingRecord:
        lists, scores = int(self.lists_changed.sum()), int(self.scores_changed.sum())
        elsewhere = self.gate.platform_difference
        if not lists and not scores:
            but = ", but for ties and rounding on another platform" if elsewhere else ""
            return _finding("identity", "pass", f"every list and every score is the same{but}")
        what = f"the {'lists' if lists else 'scores'} of {counted(lists or scores, 'query', 'queries')} differ"
        where = f"{what} with the same sources, configuration and data"
        if elsewhere:
            return _finding("identity", "mismatch", f"{where}, on another platform")
        return _finding("identity", "fail", f"{where}: something is not deterministic")

    def _quality(self) -> Iterator[FindingRecord]:
        before = self.baseline.values
        moved = not self.gate.platform_difference and (self.now.values.matrix != before.matrix).any()
        if not self.lists_changed.any() and not moved:
            scores = int(self.scores_changed.sum())
            told = f"; the scores of {counted(scores, 'query', 'queries')} changed" if scores else ""
            yield _finding("unchanged", "pass", f"no list changed{told}")
        else:
            ruling = self.against_baseline
            yield _finding("baseline", ruling.verdict, self._told(ruling, before, "the baseline"))
        # A decline that no single step showed; the baseline is its own anchor until a later one is not better.
        ruling, own = self.against_anchor, all(kept.anchor is None for kept in self.baseline.lists)
        if ruling.fails and not own:
            text = self._told(ruling, self.baseline.anchor, f"the anchor of {self.baseline.anchor_date}")
            yield _finding("anchor", "fail", text)

    def gain(self, before: Values) -> Gain:
        """The change of nDCG@10, with its interval and the odds that it is a loss."""
        units = self.gate.unit.tolist()
        return Gain.within(difference_interval(self.now.values.ndcg - before.ndcg, units), len(set(units)))

    def _told(self, found: Findings, before: Values, what: str) -> str:
        """What the rule found, in a clause that follows the name of the contender."""
        gain = self.gain(before)
        change = in_words(gain, "nDCG@10", f"against {what}")
        if found.fails and gain.high >= 0:
            return f"{change}; the one-sided test of the gate fails it (p = {found.p_worse:.2g})"
        if found.fails or found.better:
            return change
        sure = f"excluded ({BOUND:.0%} sure, one-sided)"
        can = sure if found.within else "not excluded, for these queries are too few to tell"
        return f"{change}; a drop of {self.gate.budget:g} is {can}"

    def _slices(self) -> Iterator[FindingRecord]:
        if worse := [row for row in self.slices if row["worse"]]:
            names = ", ".join(f"{row['field']} {row['value']} ({row['delta']:+.3f})" for row in worse)
            yield _finding("slice", "fail" if self.gate.block_slices else "pass", f"worse on {names}")

    @cached_property
    def slices(self) -> list[SliceRecord]:
        """Every category and intent: queries, change of nDCG@10, one-sided p of A, corrected over all slices."""
        rows: list[SliceRecord] = []
        for name in ("category", "intent"):
            labels = np.array([getattr(query, name) for query in self.gate.queries])
            for value in sorted({label for label in labels.tolist() if label}):
                inside = labels == value
                found = self._judged(self.baseline.values, inside)
                rows.append(
                    {
                        "field": name,
                        "value": value,
                        "queries": int(inside.sum()),
                        "delta": found.ndcg,
                        "p": found.p_worse if found.free + 1 >= LEAST else None,
                        "p_adjusted": None,
                        "worse": False,
                    }
                )
        tested = [(row, p) for row in rows if (p := row["p"]) is not None]
        corrected = benjamini_hochberg([p for _, p in tested]).tolist() if tested else []
        for (row, _), p in zip(tested, corrected, strict=True):
            row["p_adjusted"], row["worse"] = p, p < ALPHA and row["delta"] < -SMALL
        return rows

    def worst(self) -> list[LostQuery]:
        """The queries that lost most nDCG@10, with both rankings."""
        before, now = self.baseline.values.ndcg, self.now.values.ndcg
        difference = now - before
        order = [at for at in np.argsort(difference, kind="stable").tolist() if difference[at] < -TIE]
        return [
            {
                "id": self.gate.queries[at].id,
                "text": self.gate.queries[at].text,
                "before": float(before[at]),
                "now": float(now[at]),
                "delta": float(difference[at]),
                "list_before": self.baseline.lists[at].ids,
                "list_now": [id_ for id_, _ in self.now.lists[at][:SHALLOW]],
            }
            for at in order[:WORST]
        ]


def _far_apart(own: Sequence[Scored], kept: Sequence[Scored]) -> bool:
    pairs = zip(own, kept, strict=False)
    return len(own) != len(kept) or not all(near(a, b) for (_, a), (_, b) in pairs)


def _finding(kind: str, verdict: str, text: str) -> FindingRecord:
    return {"kind": kind, "verdict": verdict, "text": text}
