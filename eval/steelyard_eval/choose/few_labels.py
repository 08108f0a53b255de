"""The decision where labels are few: a posterior that starts from what public collections showed.

A rule that asks for proof keeps what there is under about 40 labels. What it does not ship is reconsidered: of
few contenders, what public collections favour stands until the posterior of another one lies ahead of it. There
is no step from the table to the labels: the table counts as ten queries, whatever their number. It is no proof,
so it never ships: docs/start.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.choose.blockers import Refusal, chosen_queries
from steelyard_eval.choose.folds import folds
from steelyard_eval.choose.posterior import WORTH, PriorGains, posterior
from steelyard_eval.choose.public import CONTENDERS, DEFAULT, MINILM, PublicTable, class_of
from steelyard_eval.choose.rule import Decision, kept, tried
from steelyard_eval.choose.scored import Evidence, Gates
from steelyard_eval.choose.without_labels import FEWEST, Advice
from steelyard_eval.decide.promise import OVER_FUSION, Gain, Usual, promise
from steelyard_eval.measures.spread import Matrix, spread

TOO_FEW = Refusal(
    f"fewer than {FEWEST} labelled queries do not carry a ship", "label more queries", wants_queries=True
)
WITH_A_LOG = 15
"""Labelled questions from which on they decide together with a log."""
AHEAD = 0.5
"""Deviations of the posterior by which a contender has to be ahead of what stands."""
CHOSEN = 2.5
"""The same for the best of thousands of candidates, of which chance alone lifts some."""


@dataclass(frozen=True)
class Few:
    """The contenders among the candidates that few labels choose from.

    Attributes
    ----------
    rows : int64[K], where they are.
    known, variance : float64[K], of their difference to the default on public collections: mean over these, and
        variance between queries.
    default : int, where the default is.
    labels : their labels.
    """

    rows: Indices
    known: Floats
    variance: Floats
    default: int
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, keys: Sequence[str], table: PublicTable, model: str, sha256: str = "") -> Few | None:
        """From the names of all candidates (`priors.config_key`); None where the default is not among them.

        `sha256` is of the user's own data: a public collection says nothing about itself.
        """
        candidates = _labels(keys, table.rows)
        labels = [label for label in CONTENDERS if label in candidates]
        if DEFAULT not in candidates:
            return None
        kind = class_of(model) if class_of(model) in table.variances else MINILM
        others = table.others(sha256)
        known = [(table.means[kind][label] - table.means[kind][DEFAULT])[others].mean() for label in labels]
        variance = [table.variances[kind][label][others].mean() for label in labels]
        rows = np.array([candidates[label] for label in labels], dtype=np.int64)
        return cls(rows, np.array(known), np.array(variance), candidates[DEFAULT], tuple(labels))


def _labels(keys: Sequence[str], rows: Mapping[str, str]) -> dict[str, int]:
    candidates: dict[str, int] = {}
    for row, key in enumerate(keys):
        if key in rows:
            candidates.setdefault(rows[key], row)
    return candidates


def reconsidered(
    decision: Decision,
    evidence: Evidence,
    gates: Gates,
    few: Few | None,
    advice: Advice,
    labelled: int,
    usual: Usual = OVER_FUSION,
    seed: int = 0,
) -> tuple[Decision, bool]:
    """The decision, and whether it now rests on public collections; `usual` and `seed` as for `decide`.

    Below `FEWEST` labelled questions nothing ships. What does not ship for want of proof gives way to `leader`;
    where nothing is `labelled`, to what public collections favour.
    """
    if evidence.second is not None and decision.verdict != "keep":
        return decision, False  # it rests on more than labels, which the contenders' posterior does not take up
    if decision.verdict == "ship" and labelled < FEWEST:
        decision = replace(decision, verdict="try", refusal=decision.refusal or TOO_FEW)
    proven = decision.verdict == "ship" or (decision.refusal is not None and decision.more is None)
    if few is None or (proven and labelled >= FEWEST):
        return decision, False
    stands = None if advice.attempt is None else few.default
    top = leader(evidence, few, advice, decision.candidate) if labelled else stands
    public = labelled < FEWEST and top == stands
    if top is None:
        return kept(evidence), public
    if top == decision.candidate:
        return decision, public
    gain = _of_row(evidence, top, usual) if public else _of_leader(evidence, few, advice, usual, seed)
    return tried(evidence, gates, top, decision, gain), public


def duelled(
    decision: Decision, evidence: Evidence, gates: Gates, few: Few, top: int, used: bool, usual: Usual
) -> Decision:
    """The decision on pairs that were chosen by duel: their own leader, whatever queries say.

    `top` is the leader among the rows of `few`; it is worth trying, or kept where it is what is used today.
    """
    if used:
        return kept(evidence)
    row = int(few.rows[top])
    attempt = tried(evidence, gates, row, decision, _of_row(evidence, row, usual))
    return replace(attempt, refusal=attempt.refusal or chosen_queries("duel"))


def _of_row(evidence: Evidence, row: int, usual: Usual) -> Gain:
    """What is expected of a candidate that these labels did not choose."""
    return promise(evidence.metric[row].astype(np.float64), evidence.groups, usual)


def _of_leader(evidence: Evidence, few: Few, advice: Advice, usual: Usual, seed: int) -> Gain:
    """What is expected of the leader: the gain out of fold of whoever leads without the fold."""
    part = folds(evidence.groups, seed)
    gains = np.zeros(len(part))
    for fold in (part == number for number in np.unique(part)):
        top = None if fold.all() else leader(evidence.on(~fold), few, advice)
        gains[fold] = 0.0 if top is None else evidence.metric[top][fold]
    return promise(gains, evidence.groups, usual)


def leader(evidence: Evidence, few: Few, advice: Advice, candidate: int | None = None) -> int | None:
    """The contender furthest ahead of what public collections favour, else that; None is what is used today.

    They favour the default where it was likely better than what is used today, and then that is a contender like
    the others. `candidate` is what labels alone would choose among all that is tried.
    """
    used = 0.0 if advice.shown is None else -float(advice.shown.gains.mean())
    spread = float(few.variance.mean())
    if advice.attempt is None:
        stands: int | None = None
        rows: list[int | None] = few.rows.tolist()
        base = np.zeros(evidence.metric.shape[1])
        differences, known, variance = evidence.metric[few.rows], few.known - used, few.variance
    else:
        stands = few.default
        rows = [*few.rows.tolist(), None]
        base = np.asarray(evidence.metric[stands], dtype=np.float64)
        differences = np.vstack([evidence.metric[few.rows] - base, -base])
        known, variance = np.append(few.known, used), np.append(few.variance, spread)
    ahead = ahead_by(differences, evidence.groups, PriorGains(known, variance, np.full(len(rows), WORTH)), AHEAD)
    if candidate is not None:
        table, of = evidence.prior_metric, [candidate]
        mean, worth = table.mean[of], table.worth[of]
        if stands is not None:
            mean, worth = mean - table.mean[stands], np.minimum(worth, table.worth[stands])
        prior = PriorGains(mean, np.array([spread]), worth)
        ahead = np.append(ahead, ahead_by(evidence.metric[of] - base, evidence.groups, prior, CHOSEN))
        rows.append(candidate)
    top = int(np.argmax(ahead))
    return rows[top] if ahead[top] > 0 else stands


def ahead_by(differences: Matrix, groups: Indices, prior: PriorGains, deviations: float) -> Floats:
    """float64[C]: posterior means of differences, float[C, n], less so many of their deviations."""
    gains = posterior(spread(differences, groups), prior)
    return np.asarray(gains.mean - deviations * gains.deviation, dtype=np.float64)
