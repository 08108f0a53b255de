"""What was decided and what it rests on: the promise of a recommendation, and the curve of a weight."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard_eval.common.documents.parts import Estimate
from steelyard_eval.common.documents.results import ChosenRecord, PublicRecord, ResultsDocument, RunnerUpRecord
from steelyard_eval.common.markup import MISSING, interval, number, p_value
from steelyard_eval.measures.paired import TIE
from steelyard_eval.show.report.blocks import Block, Figure, TermList
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.plots import curve as curve_plot


def _elsewhere(record: ResultsDocument, shown: PublicRecord) -> TermList:
    """What public collections showed, where the labels say nothing."""
    over = shown["near"] or (record.get("current") or {}).get("label") or MISSING
    mean, worst = (number(shown[name], signed=True) for name in ("mean", "worst"))
    return TermList(
        (
            ("verdict", record.get("verdict") or MISSING),
            (
                "measured on your notes",
                "nothing" if not record.get("labelled", 1) else "too little to prove anything",
            ),
            ("worth trying" if record.get("verdict") == "try" else "tried elsewhere", shown["default"]),
            ("compared elsewhere with", over),
            ("public collections where it was better", f"{shown['better']} of {shown['collections']}"),
            ("difference there (nDCG@10)", f"{mean} on average, at worst {worst}"),
        )
    )


def promised(record: ResultsDocument) -> tuple[Block, ...]:
    """What a recommendation promises, what it rests on, and what it would change."""
    if public := record.get("public"):
        return (_elsewhere(record, public),)
    promise = record.get("promise")
    if not promise or not record.get("leaderboard"):
        return ()
    chosen, second = record.get("chosen") or {}, record.get("runner_up")
    unproven = record.get("verdict") != "ship"
    facts = (
        ("verdict", record.get("verdict") or MISSING),
        (
            f"gain promised ({promise['metric']})",
            signed(promise) if record.get("promise_stated", True) else "not stated",
        ),
        ("probability that it is worse", p_value(promise.get("harm"))),
        *([("nothing beats the current one by more than", number(record.get("bound")))] if unproven else []),
        ("candidates", number(record.get("candidates"), 0)),
        ("queries, each used for choosing and proof", number(promise.get("queries"), 0)),
        ("runner-up", f"{second['label']}, {_parted(second)}" if second else MISSING),
    )
    current = record.get("current") or {}
    strategies = (
        ("chosen", chosen.get("strategy") or MISSING),
        ("current", current.get("strategy") or MISSING),
        *(("dropped", text) for text in chosen.get("dropped") or ()),
    )
    return (TermList(facts), TermList(strategies, code=True))


def weight(record: ChosenRecord, metric: str) -> tuple[Block, ...]:
    """The curve of the first weight of what was chosen; nothing without one."""
    plateau, points = (
        record.get("plateau"),
        sorted((point["weight"], point["value"]) for point in record.get("curve") or ()),
    )
    if len({x for x, _ in points}) < 2:
        return ()
    best = best_point(points)
    axis = record.get("axis") or {}
    where = f"{number(best[1])} at {number(best[0])}"
    title = f"{metric} against the weight of {axis.get('signal') or 'the first signal'}; best {where}"
    note = f"{metric} on the queries that were tuned on; its best is {where}."
    match plateau:
        case [int() | float() as low, int() | float() as high]:
            note += f" Shaded: the plateau of the chosen weight, {number(low)} to {number(high)}."
    note += " A curve that is flat around the chosen weight means that its exact value matters little."
    return (Figure(picture(curve_plot(record["curve"], metric, axis, plateau), title), note),)


def best_point(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The middle one of the highest points."""
    highest = max(value for _, value in points)
    top = [point for point in points if point[1] >= highest - TIE]
    return top[len(top) // 2]


def signed(part: Estimate) -> str:
    """A difference with its interval."""
    around = interval(part.get("low"), part.get("high"), signed=True)
    return f"{number(part.get('value'), signed=True)} {around}".strip()


def _parted(second: RunnerUpRecord) -> str:
    can = "tell" if second["parted"] else "cannot tell"
    mean, low, high = second["mean"], second.get("low"), second.get("high")
    ahead = mean < 0  # the document has the choice's lead over it
    if ahead and low is not None and high is not None:
        low, high = -high, -low
    lead = f"{number(abs(mean))} {interval(low, high, signed=True)}".strip()
    return f"which these queries {can} apart: {'ahead on these labels' if ahead else 'behind'} by {lead}"
