"""One contender beside its baseline: equal bits where configuration and code are the same, else equal quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Bools, Indices
from steelyard.memory.query import Query
from steelyard_eval.common.documents.gate import (
    AgainstRecord,
    BrokenPromise,
    FindingRecord,
    GatedMetric,
    GatedRecord,
    LostQuery,
    SliceRecord,
)
from steelyard_eval.common.markup import counted
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.wording import in_words
from steelyard_eval.gate.answers import GateAnswers, about
from steelyard_eval.gate.baseline import KeptContender, KeptList
from steelyard_eval.gate.hashes import list_hash, scores_hash
from steelyard_eval.gate.invariants import WORDS
from steelyard_eval.gate.power import Power, power_of
from steelyard_eval.gate.rule import ALPHA, BOUND, SMALL, Findings, judge
from steelyard_eval.gate.silence import false_answers, kept_promise, promised, risen
from steelyard_eval.gate.ties import near, settled_hash
from steelyard_eval.gate.values import NAMES, SHALLOW, Values, composite
from steelyard_eval.measures.corrected import benjamini_hochberg
from steelyard_eval.measures.paired import TIE, difference_interval
from steelyard_eval.measures.runs import Scored

WORST = 10
"""Queries that are shown with both rankings."""
LEAST = 5
"""Units of a slice, below which it is not tested."""
ORDER = ("fail", "mismatch", "inconclusive", "pass")
ANOTHER = "another platform than the baseline's"
OF_QUALITY = ("identity", "unchanged", "baseline", "anchor")
"""Findings that say by themselves whether quality held."""


@dataclass(frozen=True)
class Contest:
    """A contender now, and what the baseline keeps of it; lists are in the order of `queries`.

    `same` says whether configuration and sources are the baseline's, so that nothing may differ; otherwise quality
    decides. `elsewhere` says in words how this platform is not the baseline's; there rounding may differ.
    `unanswerable` is how many queries nothing answers. `stale` tells whether a list shows what is stale above what
    took its place; None where nothing can be.
    """

    now: GateAnswers
    kept: KeptContender
    queries: Sequence[Query]
    unit: Indices
    budget: float
    same: bool
    elsewhere: str = ""
    block_slices: bool = False
    unanswerable: int = 0
    stale: Callable[[Query, Sequence[str]], bool] | None = None

    @cached_property
    def lists_changed(self) -> Bools:
        """bool[Q]: whose list, down to place 100, differs; on another platform by more than ties."""
        return np.array([self._differs(listed, far, kept) for listed, far, kept in self._rows])

    def _differs(self, listed: Sequence[Scored], far: Sequence[Scored], kept: KeptList) -> bool:
        if list_hash(listed, far) == kept.list_hash:
            return False
        return not self.elsewhere or settled_hash((listed, far), kept.ties) != kept.settled_hash

    @cached_property
    def scores_changed(self) -> Bools:
        """bool[Q]: whose scores differ in any bit; on another platform the first ten by more than rounding."""
        if self.elsewhere:
            return np.array([_far_apart(listed[:SHALLOW], kept.first) for listed, _, kept in self._rows])
        return np.array([scores_hash(listed, far) != kept.scores_hash for listed, far, kept in self._rows])

    @cached_property
    def touched(self) -> Bools:
        """bool[Q]: whose first ten places differ."""
        ids = np.array([[id_ for id_, _ in listed[:SHALLOW]] != kept.ids for listed, _, kept in self._rows])
        return ids & self.lists_changed

    @property
    def _rows(self) -> list[tuple[Sequence[Scored], Sequence[Scored], KeptList]]:
        return list(zip(self.now.lists, self.now.deep, self.kept.lists, strict=True))

    @property
    def check(self) -> str:
        """Identity or quality."""
        return "identity" if self.same else "quality"

    @cached_property
    def against_baseline(self) -> Findings:
        """The rule on the differences to the baseline."""
        return self._judged(self.kept.values)

    @cached_property
    def against_anchor(self) -> Findings:
        """The rule on the differences to the anchor."""
        return self._judged(self.kept.anchor)

    def _judged(self, before: Values, inside: Bools | slice = slice(None)) -> Findings:
        """The rule on the differences to earlier values, of all queries or of some."""
        deep = before.deep and self.now.values.deep
        difference = (self.now.values.matrix - before.matrix)[:, inside]
        return judge(difference[0], composite(difference, deep), self.unit[inside], self.budget)

    @property
    def power(self) -> Power:
        """How far the gate can be trusted on this contender."""
        return power_of(self.against_baseline, self.budget, self.kept.deep and self.now.values.deep)

    @cached_property
    def newly_broken(self) -> list[BrokenPromise]:
        """Lists that break a promise that no list of the baseline broke."""
        never_kept = {name for kept in self.kept.lists for name in kept.broken}
        return [
            {"promise": name, "query": query.id, "entries": count}
            for query, broken in zip(self.queries, self.now.broken, strict=True)
            for name, count in broken.items()
            if name not in never_kept
        ]

    @cached_property
    def findings(self) -> list[FindingRecord]:
        """What there is to say, worst first: kind, verdict, text."""
        findings = [*self._identity()] if self.check == "identity" else [*self._quality(), *self._slices()]
        findings += [*self._silence(), *self._staleness()]
        if self.newly_broken:
            kinds = sorted({row["promise"] for row in self.newly_broken})
            queries = len({row["query"] for row in self.newly_broken})
            what = " and ".join(WORDS[kind] for kind in kinds)
            text = f"{counted(queries, 'query', 'queries')} now return entries {what}; before, none did"
            findings.insert(0, _finding("invariant", "fail", text))
        return sorted(findings, key=lambda finding: ORDER.index(finding["verdict"]))

    @property
    def verdict(self) -> str:
        """The worst of the findings."""
        return self.findings[0]["verdict"]

    @property
    def headline(self) -> str:
        """What was found in a clause; whether quality held goes before a finding on anything else."""
        first = self.findings[0]
        return first["text"] if first["kind"] in OF_QUALITY else f"{self._held}; {first['text']}"

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

    def _silence(self) -> list[FindingRecord]:
        """Answers to questions that have none, and what a floor loses of what it promised."""
        false = false_answers(self.now.answered, self.kept.answered, self.unanswerable, self.budget)
        promise = promised(self.now.config.provenance) if self.now.config else None
        units = dict(zip((query.id for query in self.queries), self.unit.tolist(), strict=True))
        lost = self.now.lost if promise is not None else None
        findings = [false] if false else []
        if promise is not None and lost:
            unit = np.array([units[query] for query in lost])
            findings.append(kept_promise(promise, list(lost.values()), unit))
        return findings

    def _staleness(self) -> list[FindingRecord]:
        if self.stale is None or not self.lists_changed.any():
            return []
        now, before = (
            [query.id for query, ids in zip(self.queries, lists, strict=True) if self.stale(query, ids)]
            for lists in (
                [[id_ for id_, _ in ranking[:SHALLOW]] for ranking in self.now.lists],
                [kept.ids for kept in self.kept.lists],
            )
        )
        text = "lists show what was replaced or has expired above what took its place"
        return [finding] if (finding := risen("stale", now, before, len(self.queries), self.budget, text)) else []

    def _identity(self) -> list[FindingRecord]:
        lists, scores = int(self.lists_changed.sum()), int(self.scores_changed.sum())
        if not lists and not scores:
            but = ", but for ties and rounding on another platform" if self.elsewhere else ""
            return [_finding("identity", "pass", f"every list and every score is the same{but}")]
        what = f"the {'lists' if lists else 'scores'} of {counted(lists or scores, 'query', 'queries')} differ"
        where = f"{what} with the same sources, configuration and data"
        if self.elsewhere:
            return [_finding("identity", "mismatch", f"{where}, on another platform")]
        return [_finding("identity", "fail", f"{where}: something is not deterministic")]

    def _quality(self) -> list[FindingRecord]:
        moved = not self.elsewhere and (self.now.values.matrix != self.kept.values.matrix).any()
        if not self.lists_changed.any() and not moved:
            scores = int(self.scores_changed.sum())
            told = f"; the scores of {counted(scores, 'query', 'queries')} changed" if scores else ""
            return [_finding("unchanged", "pass", f"no list changed{told}"), *self._drift()]
        ruling = self.against_baseline
        return [
            _finding("baseline", ruling.verdict, self._told(ruling, self.kept.values, "the baseline")),
            *self._drift(),
        ]

    def _drift(self) -> list[FindingRecord]:
        """What the anchor adds: a decline that no single step showed."""
        ruling, own = self.against_anchor, all(kept.anchor is None for kept in self.kept.lists)
        if not ruling.fails or own:  # the baseline is its own anchor until a later one is not better
            return []
        text = self._told(ruling, self.kept.anchor, f"the anchor of {self.kept.anchor_date}")
        return [_finding("anchor", "fail", text)]

    def gain(self, before: Values) -> Gain:
        """The change of nDCG@10, with its interval and the odds that it is a loss."""
        units = self.unit.tolist()
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
        return f"{change}; a drop of {self.budget:g} is {can}"

    def _slices(self) -> list[FindingRecord]:
        worse = [row for row in self.slices if row["worse"]]
        if not worse:
            return []
        names = ", ".join(f"{row['field']} {row['value']} ({row['delta']:+.3f})" for row in worse)
        return [_finding("slice", "fail" if self.block_slices else "pass", f"worse on {names}")]

    @cached_property
    def slices(self) -> list[SliceRecord]:
        """Every category and intent: queries, change of nDCG@10, one-sided p of A, corrected over all slices."""
        rows: list[SliceRecord] = []
        for name in ("category", "intent"):
            labels = np.array([getattr(query, name) for query in self.queries])
            for value in sorted({label for label in labels.tolist() if label}):
                inside = labels == value
                found = self._judged(self.kept.values, inside)
                p = found.p_worse if found.free + 1 >= LEAST else None
                size = int(inside.sum())
                rows.append(
                    {
                        "field": name,
                        "value": value,
                        "queries": size,
                        "delta": found.ndcg,
                        "p": p,
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
        difference = self.now.values.ndcg - self.kept.values.ndcg
        order = [query for query in np.argsort(difference, kind="stable").tolist() if difference[query] < -TIE]
        return [self._query(query, float(difference[query])) for query in order[:WORST]]

    def _query(self, at: int, delta: float) -> LostQuery:
        query = self.queries[at]
        return {
            "id": query.id,
            "text": query.text,
            "before": float(self.kept.values.ndcg[at]),
            "now": float(self.now.values.ndcg[at]),
            "delta": delta,
            "list_before": self.kept.lists[at].ids,
            "list_now": [id_ for id_, _ in self.now.lists[at][:SHALLOW]],
        }

    def record(self) -> GatedRecord:
        """The contender's part of the document."""
        first = self.findings[0]
        return {
            **about(self.now),
            "strategy_before": self.kept.strategy,
            "settings_before": self.kept.settings,
            "check": self.check,
            "verdict": self.verdict,
            "reason": first["kind"],
            "text": self.headline,
            "queries": len(self.queries),
            "units": len(set(self.unit.tolist())),
            "deep": self.now.values.deep and self.kept.deep,
            "touched": float(self.touched.mean()),
            "lists_changed": int(self.lists_changed.sum()),
            "scores_changed": int(self.scores_changed.sum()),
            "metrics": self._metrics(),
            "against": [
                self._against("baseline", None, self.against_baseline, self.kept.values),
                self._against("anchor", self.kept.anchor_date, self.against_anchor, self.kept.anchor),
            ],
            "slices": self.slices,
            "broken": self.newly_broken,
            "worst": self.worst(),
            "notices": [*self.now.notices, *([f"{ANOTHER}: {self.elsewhere}"] if self.elsewhere else [])],
            "power": self.power.record(),
        }

    def _metrics(self) -> list[GatedMetric]:
        now, before, anchor = (
            part.matrix.mean(axis=1).tolist() for part in (self.now.values, self.kept.values, self.kept.anchor)
        )
        rows = zip(NAMES, before, now, anchor, strict=True)
        return [
            {"metric": name, "before": old, "now": new, "delta": new - old, "anchor": first}
            for name, old, new, first in rows
        ]

    def _against(self, name: str, date: str | None, found: Findings, before: Values) -> AgainstRecord:
        gain = self.gain(before)
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


def _far_apart(own: Sequence[Scored], kept: Sequence[Scored]) -> bool:
    pairs = zip(own, kept, strict=False)
    return len(own) != len(kept) or not all(near(a, b) for (_, a), (_, b) in pairs)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _finding(kind: str, verdict: str, text: str) -> FindingRecord:
    return {"kind": kind, "verdict": verdict, "text": text}
