"""The parts of the JSON document of a floor: what it promises, in numbers and words, and what each would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.grammar import number_text
from steelyard_eval.common.documents.floor import ClaimRecord, QuestionsRecord
from steelyard_eval.common.documents.results import FloorPoint
from steelyard_eval.decide.floors import SURE, Bound, Lists
from steelyard_eval.measures.statistics import exact_interval


def claim(name: str, share: float, bound: Bound, lists: Lists, floor: float | None) -> ClaimRecord:
    """One promise in numbers; what was measured is that of the floor that was chosen in the end."""
    used = bound.floor if floor is None else floor
    measured = lists.lost(np.array([used])).mean() if name == "lost" else lists.answered(used) / len(lists.unit)
    return {
        "name": name,
        "share": share,
        "measured": float(measured),
        "bound": bound.bound,
        "queries": bound.queries,
        "units": bound.units,
        "floor": bound.floor if math.isfinite(bound.floor) else None,
    }


def sentence(floor: float | None, claims: Sequence[ClaimRecord], strange: Lists) -> str:
    """What the floor promises, or why there is none."""
    if floor is None and len(claims) > 1:
        lost, false = (record["floor"] for record in claims)
        least = "need no floor" if false is None else f"need {false:.4g}"
        most = "any floor loses more than that" if lost is None else f"no more may be lost than {lost:.4g} loses"
        return (
            f"No floor keeps both promises: so few false answers {least}, and {most}. Show everything, as now, or "
            "give one of them up."
        )
    if floor is None:
        return "No floor keeps that promise by these labels: show everything, as now."
    if not math.isfinite(floor):
        return (
            f"No floor is needed: {claims[0]['measured']:.0%} of the questions without an answer are answered as "
            f"it is, and at most {claims[0]['share']:.0%}, {SURE:.0%} sure, from {claims[0]['queries']}."
        )
    words = {
        "lost": "loses at most {share:.0%} of the relevant entries, {sure:.0%} sure, from your {queries} labels",
        "false": "answers at most {share:.0%} of the questions without an answer, {sure:.0%} sure, from {queries}",
    }
    said = "; ".join(words[record["name"]].format(sure=SURE, **record) for record in claims)
    other = "questions about something else usually get almost nothing (docs/floor.md)"
    if len(strange.unit):
        other = f"of the words shown for {len(strange.unit)} questions about something else, "
        other += f"{strange.words_shown(floor):.0%} are left"
    return (
        f"The floor {number_text(floor)} {said}; {other}; a question that your memory merely cannot answer is "
        "still answered."
    )


def questions(lists: Lists, nothing: Lists, strange: Lists, floor: float) -> list[QuestionsRecord]:
    """By kind of question: how many, how many are answered, and the shares of hits and of words that are left."""
    kinds = {"answerable": lists, "their lists without what is relevant": _irrelevant(lists)}
    kinds |= {"no answer": nothing, "about something else": strange}
    return [_row(name, kind, floor) for name, kind in kinds.items() if len(kind.unit)]


def _row(name: str, lists: Lists, floor: float) -> QuestionsRecord:
    count, answered = len(lists.unit), lists.answered(floor)
    low, high = exact_interval(answered, count)
    return {
        "questions": name,
        "count": count,
        "answered": answered / count,
        "low": low,
        "high": high,
        "hits": float((lists.score >= floor).sum() / count),
        "words": lists.words_shown(floor),
    }


def _irrelevant(lists: Lists) -> Lists:
    """The lists without their relevant entries."""
    keep = ~lists.relevant
    offsets = np.concatenate([[0], np.cumsum(keep)])[lists.offsets]
    return replace(
        lists, offsets=offsets, score=lists.score[keep], relevant=lists.relevant[keep], words=lists.words[keep]
    )


def curve(lists: Lists, nothing: Lists) -> list[FloorPoint]:
    """For 41 floors: what is lost, and the shares of lists, words and unanswerable questions that are left."""
    floors = np.quantile(lists.score, np.linspace(0, 1, 41)) if len(lists.score) else np.zeros(0)
    lost = lists.lost(floors).mean(axis=0) if len(lists.found()) else np.zeros(len(floors))
    points: list[FloorPoint] = [
        {
            "floor": floor,
            "lost": float(lost[i]),
            "answered": lists.answered(floor) / len(lists.unit),
            "words": lists.words_shown(floor),
        }
        for i, floor in enumerate(floors.tolist())
    ]
    for point in points if len(nothing.unit) else ():
        point["false"] = nothing.answered(point["floor"]) / len(nothing.unit)
    return points
