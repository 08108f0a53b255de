"""What a floor promises, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from steelyard.grammar import number_text
from steelyard_eval.choose.thresholds import SURE, Bound, Lists


class ClaimRecord(TypedDict):
    """One promise: `lost` or `false` at most this share; what was measured, and the bound that keeps it."""

    name: str
    share: float
    measured: float
    bound: float
    queries: int
    units: int
    floor: float | None


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
