"""The decision where labels are few: what is likely elsewhere, until labels of these notes say more.

A rule that asks for proof keeps what there is under about 40 labels, and so does one that is harmless. What it
would keep is reconsidered: below 20 labelled queries by what public collections showed, from then on by the
largest mean less one standard error among few contenders. Neither is a proof, so neither ships: docs/start.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.decide.decision import Decision, tried
from steelyard_eval.decide.posterior import LEAST, WORTH, Matrix, Moments
from steelyard_eval.decide.public import CONTENDERS, DEFAULT, MINILM, PublicTable, class_of
from steelyard_eval.decide.refusal import Refusal, chosen_queries
from steelyard_eval.decide.rule import Evidence, Gates
from steelyard_eval.decide.without_labels import FEWEST, Advice

SHIPS = 15
"""Labelled queries below which nothing ships: of 5 and 10, what passed the gates lost in 25% and 6% of draws."""
TOO_FEW = Refusal(f"fewer than {SHIPS} labelled queries do not carry a ship", "label more")


@dataclass(frozen=True)
class Few:
    """The contenders among the candidates that few labels choose from.

    Attributes
    ----------
    rows : int64[K], where they are.
    variance : float64[K], of their difference to the default between queries on public collections.
    default : int, where the default is.
    labels : their labels.
    """

    rows: Indices
    variance: Floats
    default: int
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, keys: Sequence[str], table: PublicTable, model: str) -> Few | None:
        """From the names of all candidates (`priors.key_of`); None where the default is not among them."""
        at = _labels(keys, table.rows)
        known = table.variances.get(class_of(model), table.variances[MINILM])
        labels = [label for label in CONTENDERS if label in at]
        if DEFAULT not in at:
            return None
        rows = np.array([at[label] for label in labels], dtype=np.int64)
        return cls(rows, np.array([known[label] for label in labels]), at[DEFAULT], tuple(labels))


def _labels(keys: Sequence[str], rows: Mapping[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at, key in enumerate(keys):
        if key in rows:
            found.setdefault(rows[key], at)
    return found


def reconsidered(
    decision: Decision, evidence: Evidence, gates: Gates, few: Few | None, advice: Advice, labelled: int
) -> tuple[Decision, bool]:
    """The decision, and whether it now rests on public collections.

    Below `SHIPS` labelled questions nothing ships. Below `FEWEST` what does not ship gives way to the advice,
    unless it is ahead of the default by a standard error. From then on a keep gives way to the leader, if that is
    ahead of the current one by as much.
    """
    if few is None:
        return decision, False
    if labelled >= FEWEST:
        top = leader(evidence, few)
        better = decision.verdict == "keep" and ahead(evidence, top)
        return (tried(evidence, gates, top, decision) if better else decision), False
    if decision.verdict == "ship" and labelled >= SHIPS:
        return decision, False
    if decision.verdict == "ship":
        decision = replace(decision, verdict="try", refusal=decision.refusal or TOO_FEW)
    if advice.attempt is None:
        return decision, decision.verdict == "keep"
    if decision.candidate is not None and ahead(evidence, decision.candidate, few.default):
        return decision, False
    return tried(evidence, gates, few.default, decision), True


def duelled(decision: Decision, evidence: Evidence, gates: Gates, few: Few | None, top: int) -> Decision:
    """The decision on pairs that were chosen by duel: their own leader is worth trying, whatever queries say.

    `top` is the leader among the rows of `few`.
    """
    if few is None:
        return decision
    found = tried(evidence, gates, int(few.rows[top]), decision)
    return replace(found, refusal=found.refusal or chosen_queries("duel"))


def leader(evidence: Evidence, few: Few) -> int:
    """The contender of largest mean less one standard error of its difference to the default; else the default."""
    differences = evidence.metric[few.rows] - evidence.metric[few.default]
    lower = less_one_error(differences, evidence.groups, few.variance)
    top = int(np.argmax(lower))
    return int(few.rows[top]) if lower[top] > 0 else few.default


def less_one_error(differences: Matrix, groups: Indices, variance: Floats | None = None) -> Floats:
    """float64[C]: means of differences, float[C, n], less one standard error.

    The variance between queries is pooled with the known one, float64[C], which counts as ten queries.
    """
    sums = Moments.of(differences, groups)
    between = sums.queries * sums.error**2
    if variance is not None:
        between = (sums.queries * between + WORTH * variance) / (sums.queries + WORTH)
    return np.asarray(sums.mean - np.maximum(np.sqrt(between / sums.queries), LEAST), dtype=np.float64)


def ahead(evidence: Evidence, candidate: int, of: int | None = None) -> bool:
    """Whether a candidate's mean is above that of another one, or of the current one, by a standard error."""
    differences = np.asarray(evidence.metric[candidate], dtype=np.float64)
    if of is not None:
        differences = differences - evidence.metric[of]
    return bool(less_one_error(differences[None, :], evidence.groups)[0] > 0)
