"""Compares two rankings of one query: which entries stayed, moved, entered or left, and by which signal.

An entry moves because its order with some others turns: it passed them, or they passed it. So what each signal
adds to its score is measured against the mean of what it adds to theirs, in both lists. The signal by which this
*lead* changed most in the direction of the move is the cause. The leads by signals sum up to that of the score.

Scores of two configurations may have different scales: 12.3 from FTS5, 0.03 from RRF. A signal that adds the same
in both shows that the scale is one, and then scores are compared as they are: where one weight was changed, only
its signal moves entries. Else each score is a share of the way from the last to the best of the entries compared.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from steelyard_eval.common.configurations import short_name
from steelyard_eval.explain.document import ChangeRecord, ExplainedEntry
from steelyard_eval.explain.view import ListView, View, contributions

ROUNDING = 1e-12


def moves(before: ListView, after: ListView, about: Callable[[str], ExplainedEntry]) -> list[ChangeRecord]:
    """Make a record for every entry of either list, in the order of the second, then those that left.

    `by` is the signal whose lead changed most in the direction of the move, of those that lead that way now if
    any does: a list that counts for less than alone moves nothing. For an entry that the first configuration does
    not rank it is the one that adds most to its score in the second. None when no signal did it,
    because other entries moved, or when the second list has no signals. `why` is left empty.
    """
    records = [_move(about(id_), before, after) for id_ in {**after.listed, **before.listed}]
    if not isinstance(after, View):
        return records
    compared = {move["id"]: move for move in records if move["id"] in before.ranked and move["id"] in after.ranked}
    parts = [{id_: _parts(view, id_) for id_ in compared} for view in (before, after)]
    totals = [[sum(added.values()) for added in own.values()] for own in parts]
    signals = {name for added in parts[0].values() for name, value in added.items() if value}
    # On one scale some signal adds the same in both, and not 0 everywhere.
    same = any(
        all(math.isclose(own.get(name, 0.0), parts[1][id_].get(name, 0.0)) for id_, own in parts[0].items())
        for name in signals
    )
    units = [1.0 if same or not own else max(own) - min(own) or 1.0 for own in totals]
    for id_, move in compared.items():
        others = [other for other in compared if _turned(move, compared[other])]
        first, second = (_lead(own, id_, others, unit) for own, unit in zip(parts, units, strict=True))
        move["standing"] = {"before": sum(first.values()), "after": sum(second.values())}
        names = sorted({*first, *second})
        move["changes"] = {name: second.get(name, 0.0) - first.get(name, 0.0) for name in names}
        sign = (_places_up(move) > 0) - (_places_up(move) < 0)
        gained = {name: sign * change for name, change in move["changes"].items()}
        ahead = {name: gain for name, gain in gained.items() if sign * second.get(name, 0.0) > ROUNDING}
        move["by"] = _largest(ahead, ROUNDING) or _largest(gained, ROUNDING)
    for move in records:
        if move["id"] in after.listed and move["id"] not in before.ranked:
            move["by"] = _largest(_parts(after, move["id"]), 0.0)
    return records


def _move(entry: ExplainedEntry, before: ListView, after: ListView) -> ChangeRecord:
    id_ = entry["id"]
    was, now = before.listed.get(id_), after.listed.get(id_)
    return {
        **entry,
        "kind": "entered" if was is None else "left" if now is None else "stayed" if was == now else "moved",
        "before": before.rank(id_),
        "after": after.rank(id_),
        "standing": None,
        "by": None,
        "changes": {},
        "why": "",
    }


def _places_up(move: ChangeRecord) -> int:
    return (move["before"] or 0) - (move["after"] or 0)


def _turned(one: ChangeRecord, other: ChangeRecord) -> bool:
    """Whether one passed the other if it went up, or the other passed it if it went down."""
    then = (one["before"] or 0) - (other["before"] or 0)
    now = (other["after"] or 0) - (one["after"] or 0)
    return _places_up(one) * then > 0 and _places_up(one) * now > 0


def _largest(parts: Mapping[str, float], least: float) -> str | None:
    return max((name for name in parts if parts[name] > least), key=lambda name: (parts[name], name), default=None)


def _lead(
    parts: Mapping[str, Mapping[str, float]], id_: str, others: Sequence[str], unit: float
) -> dict[str, float]:
    """By signal, how far it puts an entry ahead of others, in shares of a unit; 0 without others."""
    names = sorted({name for added in parts.values() for name in added})
    mean = {name: sum(parts[other].get(name, 0.0) for other in others) / max(len(others), 1) for name in names}
    return {name: (parts[id_].get(name, 0.0) - mean[name]) / unit if others else 0.0 for name in names}


def _parts(view: ListView, id_: str) -> dict[str, float]:
    """Contributions by signal; what a factor adds is listed under the name of the factor."""
    tree = view.tree(id_)
    terms, factor = contributions(tree) if tree else ([], None)
    parts: dict[str, float] = {}
    for term in terms:
        name = short_name(term["signal"])
        parts[name] = parts.get(name, 0.0) + term["contribution"]
    if factor is not None:
        parts[factor["formula"]] = sum(parts.values()) * (factor["value"] - 1.0)
    return parts
