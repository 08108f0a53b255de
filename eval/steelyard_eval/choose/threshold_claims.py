"""What a floor promises, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from steelyard.grammar import number_text
from steelyard_eval.choose.thresholds import SURE, Bound, Lists
from steelyard_eval.result.structs import Fact, Said


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


def said_of_floor(floor: float | None, claims: Sequence[ClaimRecord], strange: Lists) -> Said:
    """What the floor promises, or why there is none."""
    if floor is None and len(claims) > 1:
        lost, false = (record["floor"] for record in claims)
        return Said("floor_neither", {"least": false, "none": false is None, "most": lost, "any": lost is None})
    if floor is None:
        return Said("floor_none")
    facts: dict[str, Fact] = {"sure": SURE}
    if not math.isfinite(floor):
        first = claims[0]
        facts |= {"measured": first["measured"], "share": first["share"], "queries": first["queries"]}
        return Said("floor_not_needed", facts)
    for record in claims:
        facts |= {record["name"]: record["share"], f"{record['name']}_queries": record["queries"]}
    facts |= {"floor": number_text(floor), "both": len(claims) > 1, "usually": not len(strange.unit)}
    if len(strange.unit):
        facts |= {"strange": len(strange.unit), "left": strange.words_shown(floor)}
    return Said("floor_kept", facts)
