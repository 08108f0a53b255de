"""One contender against what the baseline keeps of it: identity where nothing changed, else quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.arrays import Bools, Floats, Indices
from steelyard.query import Query
from steelyard_eval.datasets.faults import counted
from steelyard_eval.gate.answers import Answers, about
from steelyard_eval.gate.baseline import Kept, KeptList
from steelyard_eval.gate.hashes import list_hash, scores_hash
from steelyard_eval.gate.invariants import WORDS
from steelyard_eval.gate.rule import ALPHA, SMALL, Changes, Findings, judge
from steelyard_eval.gate.values import NAMES, SHALLOW, Values, composite
from steelyard_eval.measures.statistics import TIE, benjamini_hochberg, difference_interval

Record = dict[str, Any]
SCORE_TOLERANCE = 1e-6
"""How far scores may differ on another platform than the baseline's."""
WORST = 10
"""Queries that are shown with both rankings."""
LEAST = 5
"""Units of a slice, below which it is not tested."""
ORDER = ("fail", "inconclusive", "pass")


@dataclass(frozen=True)
class Contest:
    """A contender now, and what the baseline keeps of it; lists are in the order of `queries`.

    `same` is the check that the hashes of configuration, sources and platform allow: bits (all are equal), lists
    (all but the platform), or nothing (something changed, so quality decides).
    """

    now: Answers
    kept: Kept
    queries: Sequence[Query]
    unit: Indices
    budget: float
    same: str
    block_slices: bool = False

    @cached_property
    def lists_changed(self) -> Bools:
        """bool[Q]: whose list, down to place 100, differs."""
        return np.array([list_hash(own, far) != kept.list_hash for own, far, kept in self._rows])

    @cached_property
    def scores_changed(self) -> Bools:
        """bool[Q]: whose scores differ in any bit."""
        return np.array([scores_hash(own, far) != kept.scores_hash for own, far, kept in self._rows])

    @cached_property
    def touched(self) -> Bools:
        """bool[Q]: whose first ten places differ."""
        return np.array([[id_ for id_, _ in own[:SHALLOW]] != kept.ids for own, _, kept in self._rows])

    @property
    def _rows(self) -> list[tuple[Any, Any, KeptList]]:
        return list(zip(self.now.lists, self.now.deep, self.kept.lists, strict=True))

    @property
    def check(self) -> str:
        """Identity or quality."""
        return "quality" if self.same == "nothing" else "identity"

    @cached_property
    def against_baseline(self) -> Findings:
        """The rule on the differences to the baseline."""
        return judge(self._changes(self.kept.values), self.budget)

    @cached_property
    def against_anchor(self) -> Findings:
        """The rule on the differences to the anchor."""
        return judge(self._changes(self.kept.anchor), self.budget)

    def _changes(self, before: Values) -> Changes:
        deep = before.deep and self.now.values.deep
        difference = self.now.values.matrix - before.matrix
        return Changes.of(difference[0], composite(difference, deep), self.unit, deep=deep)

    @cached_property
    def newly_broken(self) -> list[Record]:
        """Lists that break a promise that no list of the baseline broke."""
        never_kept = {name for kept in self.kept.lists for name in kept.broken}
        return [
            {"promise": name, "query": query.id, "entries": count}
            for query, broken in zip(self.queries, self.now.broken, strict=True)
            for name, count in broken.items()
            if name not in never_kept
        ]

    @cached_property
    def differing_scores(self) -> Bools:
        """bool[Q]: where a score of the first ten differs by more than platforms may."""
        return np.array([_far_apart(own[:SHALLOW], kept.first) for own, _, kept in self._rows])

    @cached_property
    def findings(self) -> list[Record]:
        """What there is to say, worst first: kind, verdict, text."""
        found = [*self._identity()] if self.check == "identity" else [*self._quality(), *self._slices()]
        if self.newly_broken:
            kinds = sorted({row["promise"] for row in self.newly_broken})
            queries = len({row["query"] for row in self.newly_broken})
            what = " and ".join(WORDS[kind] for kind in kinds)
            text = f"{counted(queries, 'query', 'queries')} now return entries {what}; before, none did"
            found.insert(0, _finding("invariant", "fail", text))
        return sorted(found, key=lambda one: ORDER.index(one["verdict"]))

    @property
    def verdict(self) -> str:
        """The worst of the findings."""
        return str(self.findings[0]["verdict"])

    def _identity(self) -> list[Record]:
        changed, scores = int(self.lists_changed.sum()), self.differing_scores
        where = "with the same sources, configuration and data"
        if changed:
            what = f"the lists of {counted(changed, 'query', 'queries')} differ {where}"
            text = f"{what}: something is not deterministic"
            return [_finding("identity", "fail", text)]
        if self.same == "bits":
            scores = self.scores_changed
        if scores.any():
            text = f"the scores of {counted(int(scores.sum()), 'query', 'queries')} differ {where}"
            return [_finding("identity", "fail", text)]
        return [_finding("identity", "pass", "every list and every score is the same")]

    def _quality(self) -> list[Record]:
        if not self.lists_changed.any() and not (self.now.values.matrix != self.kept.values.matrix).any():
            scores = int(self.scores_changed.sum())
            told = f"; the scores of {counted(scores, 'query', 'queries')} changed" if scores else ""
            return [_finding("unchanged", "pass", f"no list changed{told}"), *self._drift()]
        found = self.against_baseline
        return [_finding("baseline", found.verdict, in_words(found, self.budget, "the baseline")), *self._drift()]

    def _drift(self) -> list[Record]:
        """What the anchor adds: a decline that no single step showed."""
        found = self.against_anchor
        if not found.fails:
            return []
        return [_finding("anchor", "fail", in_words(found, self.budget, f"the anchor of {self.kept.anchor_date}"))]

    def _slices(self) -> list[Record]:
        worse = [row for row in self.slices if row["worse"]]
        if not worse:
            return []
        names = ", ".join(f"{row['field']} {row['value']} ({row['delta']:+.3f})" for row in worse)
        return [_finding("slice", "fail" if self.block_slices else "pass", f"worse on {names}")]

    @cached_property
    def slices(self) -> list[Record]:
        """Every category and intent: queries, change of nDCG@10, one-sided p of A, corrected over all slices."""
        rows = []
        for name in ("category", "intent"):
            labels = np.array([getattr(query, name) for query in self.queries])
            for value in sorted({label for label in labels.tolist() if label}):
                rows.append({"field": name, "value": value, **self._slice(labels == value)})
        tested = [row for row in rows if row["p"] is not None]
        corrected = benjamini_hochberg([row["p"] for row in tested]).tolist() if tested else []
        for row, p in zip(tested, corrected, strict=True):
            row |= {"p_adjusted": p, "worse": p < ALPHA and row["delta"] < -SMALL}
        return rows

    def _slice(self, inside: Bools) -> Record:
        deep = self.kept.deep and self.now.values.deep
        difference = (self.now.values.matrix - self.kept.values.matrix)[:, inside]
        unit = renumbered(self.unit[inside])
        found = judge(Changes.of(difference[0], composite(difference, deep), unit, deep=deep))
        p = float(found.p_worse) if unit.max() + 1 >= LEAST else None
        return {
            "queries": int(inside.sum()),
            "delta": float(found.ndcg),
            "p": p,
            "p_adjusted": None,
            "worse": False,
        }

    def worst(self) -> list[Record]:
        """The queries that lost most nDCG@10, with both rankings."""
        difference = self.now.values.ndcg - self.kept.values.ndcg
        order = [at for at in np.argsort(difference, kind="stable").tolist() if difference[at] < -TIE]
        return [self._query(at, float(difference[at])) for at in order[:WORST]]

    def _query(self, at: int, delta: float) -> Record:
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

    def record(self) -> Record:
        """The contender's part of the document."""
        first = self.findings[0]
        return {
            **about(self.now),
            "strategy_before": self.kept.strategy,
            "check": self.check,
            "verdict": self.verdict,
            "reason": first["kind"],
            "text": first["text"],
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
            "notices": list(self.now.notices),
        }

    def _metrics(self) -> list[Record]:
        now, before, anchor = (
            part.matrix.mean(axis=1).tolist() for part in (self.now.values, self.kept.values, self.kept.anchor)
        )
        rows = zip(NAMES, before, now, anchor, strict=True)
        return [
            {"metric": name, "before": old, "now": new, "delta": new - old, "anchor": first}
            for name, old, new, first in rows
        ]

    def _against(self, name: str, date: str | None, found: Findings, before: Values) -> Record:
        ends = difference_interval(self.now.values.ndcg - before.ndcg, self.unit.tolist())
        return {
            "name": name,
            "date": date,
            "verdict": found.verdict,
            "reason": found.reason,
            "delta": float(found.ndcg),
            "low": ends.low,
            "high": ends.high,
            "composite": float(found.composite),
            "p_worse": float(found.p_worse),
            "p_better": float(found.p_better),
            "p_ndcg": float(found.p_ndcg),
            "upper": float(found.upper) if np.isfinite(found.upper) else None,
            "limit": float(found.limit),
        }


def _far_apart(own: Sequence[tuple[str, float]], kept: Sequence[tuple[str, float]]) -> bool:
    pairs = zip(own, kept, strict=False)
    return len(own) != len(kept) or any(
        abs(a - b) > SCORE_TOLERANCE * max(1.0, abs(b)) for (_, a), (_, b) in pairs
    )


def renumbered(unit: Indices) -> Indices:
    """The same units, numbered from 0 without gaps."""
    own: Indices = np.unique(unit, return_inverse=True)[1]
    return own


def in_words(found: Findings, budget: float, what: str) -> str:
    """What the rule found, in a clause that follows the name of the contender."""
    change = f"{float(found.ndcg):+.3f} nDCG@10 against {what}"
    p = min(float(found.p_worse), float(found.p_ndcg))
    if found.verdict == "fail":
        by = f"p = {p:.2g}" if found.tested else f"the composite dropped by more than {float(found.limit):.3f}"
        return f"{change}, {by}"
    if found.better:
        return f"{change}, significantly better"
    if found.within:
        return f"{change}, at most {max(float(found.upper), 0.0):.3f} worse with 90% confidence"
    return f"{change}; it may be worse by {_most(found)}, and {budget:g} is the budget"


def _most(found: Findings) -> str:
    return f"{float(found.upper):.3f}" if np.isfinite(found.upper) else "any amount"


def _finding(kind: str, verdict: str, text: str) -> Record:
    return {"kind": kind, "verdict": verdict, "text": text}


def means(values: Values) -> Mapping[str, float]:
    """The mean of each of the three values."""
    rows: Floats = values.matrix.mean(axis=1)
    return dict(zip(NAMES, rows.tolist(), strict=True))
