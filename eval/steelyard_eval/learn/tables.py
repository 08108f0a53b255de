"""The tables of what was learned: gains by evidence, and what acts are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.base.arrays import Ints
from steelyard_eval.learn.case import LogCase
from steelyard_eval.learn.decided import LogDecision
from steelyard_eval.learn.gains import IMPUTATION_SHARES
from steelyard_eval.learn.position_bias import FeedbackBias
from steelyard_eval.result.structs import Cell, Estimate, Table

MOST_TOLD = 4  # interleaved rankings that are told of, all of them together being one
WON = ("wins", "ties", "losses", "preferred")


def tables(decision: LogDecision, lists: Ints | None, biases: Sequence[FeedbackBias]) -> Iterator[Table]:
    """Those that have something in them; `lists` are today's and the candidate's that is looked at closely."""
    case, census = decision.case, decision.case.log.census
    classes = case.learned.classes
    yield from _table("gains", ["by", "queries", "imputed", "gain_by", "error", "refit"], _gains(decision, lists))
    yield from _table("turns", ["drafted", *WON, "p"], _won(case))
    if lists is not None:
        counts, lifts = case.cells.by_kind(), classes.strengths(case.cells)
        kinds: list[list[Cell]] = [[kind, counts[kind], lifts[kind]] for kind in counts]
        yield Table("acts", ["act", "acts", "lift"], kinds, {"lift": classes.lift})
        rates = classes.relevant.sum(axis=1).tolist(), classes.other.sum(axis=1).tolist()
        yield Table(
            "places",
            ["place", "relevant", "irrelevant"],
            [[i, *of] for i, of in enumerate(zip(*rates, strict=True), 1)],
        )
    follows: list[list[Cell]] = [[bias.label, Estimate(bias.delta, *bias.ends)] for bias in biases]
    yield from _table("follows", ["follows", "log_odds"], follows)
    lines: list[list[Cell]] = [[n, rule, ", ".join(map(str, first))] for n, rule, first in census.ordered]
    yield from _table("set_aside", ["set_aside", "rule", "lines"], lines)


def _table(key: str, columns: list[str], rows: Sequence[list[Cell]]) -> Iterator[Table]:
    if rows:
        yield Table(key, columns, [*rows])


def _gains(decision: LogDecision, lists: Ints | None) -> list[list[Cell]]:
    """What labels say of one candidate, alone and sharpened by acts, then what acts say in every view."""
    rows: list[list[Cell]] = []
    recommended, about = decision.recommended, decision.about
    if recommended is not None and about is not None:
        sides = [("by_labels", len(decision.labelled), recommended.scored_with(None).of_metric)]
        sides += [("by_both", decision.others, recommended.scored.of_metric)] if decision.share else []
        rows += [[by, n, None, float(of.mean[about]), float(of.deviation[about]), None] for by, n, of in sides]
    if lists is not None:
        seen = decision.learned.views(lists)
        for view, share in enumerate(IMPUTATION_SHARES):
            refit = float(seen.refit[view]) if view else None
            rows.append(["by_acts", None, share, float(seen.gain[view]), float(seen.error[view]), refit])
    return rows


def _won(case: LogCase) -> list[list[Cell]]:
    """Rankings that took turns."""
    return [
        [of.other or None, of.wins, of.ties, of.losses, of.wins / of.decided if of.decided else None, of.p]
        for of in case.duels[:MOST_TOLD]
    ]
