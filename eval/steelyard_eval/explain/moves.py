"""Compares two rankings of one query: which entries stayed, moved, entered or left, and by which signal.

An entry moves because its order with some others turns: it passed them, or they passed it. So what each signal
adds to its score is measured against the mean of what it adds to theirs, in both lists. The signal by which this
*lead* changed most in the direction of the move is the cause. The leads by signals sum up to that of the score.

Scores of two configurations may have different scales: 12.3 from FTS5, 0.03 from RRF. A signal that adds the same
in both shows that the scale is one, and then scores are compared as they are: where one weight was changed, only
its signal moves entries. Else each score is a share of the way from the last to the best of the entries compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard_eval.common.configurations import short_name
from steelyard_eval.explain.document import MoveRecord, StandingRecord
from steelyard_eval.explain.view import ListView, View, contributions

SAME = 1e-12
"""Changes closer to zero than this are rounding."""

Parts = Mapping[str, Mapping[str, float]]
"""By entry and signal, what it adds to the score."""
Lead = dict[str, float]
"""By signal, how far it puts an entry ahead of those with which its order turned."""


def moves(before: View, after: View | ListView) -> list[MoveRecord]:
    """Make a record for every entry of either list, in the order of the second, then those that left.

    `by` is the signal whose lead changed most in the direction of the move, and for an entry that the first
    configuration does not rank the one that adds most to its score in the second. None when no signal did it,
    because other entries moved, or when the second list has no signals.
    """
    shown = [*after.listed, *(id_ for id_ in before.listed if id_ not in after.listed)]
    compared = [id_ for id_ in shown if id_ in before.ranked and id_ in after.ranked]
    if isinstance(after, ListView):
        return [_move(id_, before, after, None, None) for id_ in shown]
    places = {id_: (_place(before, id_), _place(after, id_)) for id_ in compared}
    first, second = ({id_: _parts(view, id_) for id_ in compared} for view in (before, after))
    found = leads(first, second, places)
    records = [_move(id_, before, after, *found.get(id_, (None, None))) for id_ in shown]
    return [
        {**move, "by": _most(_parts(after, id_))} if id_ in after.listed and id_ not in before.ranked else move
        for id_, move in zip(shown, records, strict=True)
    ]


def _most(parts: Mapping[str, float]) -> str | None:
    """The signal that adds most to a score; None where none adds anything."""
    best = max(parts, key=lambda name: (parts[name], name), default=None)
    return best if best is not None and parts[best] > 0 else None


def leads(before: Parts, after: Parts, places: Mapping[str, tuple[int, int]]) -> dict[str, tuple[Lead, Lead]]:
    """Compute the leads of each entry in both lists; 0 where it passed none of the others, and none passed it.

    `places` has the ranks of the entries in both lists.
    """
    units = (1.0, 1.0) if _on_one_scale(before, after) else (_spread(before), _spread(after))
    turned = {id_: _turned(id_, places) for id_ in places}
    return {
        id_: (_lead(before, id_, others, units[0]), _lead(after, id_, others, units[1]))
        for id_, others in turned.items()
    }


def _on_one_scale(before: Parts, after: Parts) -> bool:
    """Whether some signal adds the same in both, and not 0 everywhere."""
    names = {name for added in before.values() for name, value in added.items() if value}
    return any(
        all(math.isclose(added.get(name, 0.0), after[id_].get(name, 0.0)) for id_, added in before.items())
        for name in names
    )


def _spread(parts: Parts) -> float:
    totals = [sum(added.values()) for added in parts.values()]
    return max(totals, default=0.0) - min(totals, default=0.0) or 1.0


def _turned(id_: str, places: Mapping[str, tuple[int, int]]) -> list[str]:
    """The entries that this one passed if it went up, or that passed it if it went down."""
    was, now = places[id_]
    way = was - now
    return [other for other, (then, at) in places.items() if way * (was - then) > 0 and way * (at - now) > 0]


def _lead(parts: Parts, id_: str, others: Sequence[str], unit: float) -> Lead:
    names = sorted({name for added in parts.values() for name in added})
    mean = {name: sum(parts[other].get(name, 0.0) for other in others) / max(len(others), 1) for name in names}
    return {name: (parts[id_].get(name, 0.0) - mean[name]) / unit if others else 0.0 for name in names}


def _place(view: View | ListView, id_: str) -> int:
    return view.listed.get(id_) or view.ranked[id_]


def _parts(view: View, id_: str) -> dict[str, float]:
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


def _move(id_: str, before: View, after: View | ListView, first: Lead | None, second: Lead | None) -> MoveRecord:
    was, now = (view.listed.get(id_) or view.ranked.get(id_) for view in (before, after))
    standing: StandingRecord | None = None
    changes: dict[str, float] = {}
    if first is not None and second is not None:
        changes = changed(first, second)
        standing = {"before": sum(first.values()), "after": sum(second.values())}
    return {
        "id": id_,
        "kind": _kind(id_, before, after),
        "before": was,
        "after": now,
        "standing": standing,
        "by": cause(was, now, changes),
        "changes": changes,
    }


def _kind(id_: str, before: View, after: View | ListView) -> str:
    if id_ not in before.listed:
        return "entered"
    if id_ not in after.listed:
        return "left"
    return "stayed" if before.listed[id_] == after.listed[id_] else "moved"


def changed(first: Lead, second: Lead) -> dict[str, float]:
    """By how much the lead by each signal changed."""
    return {name: second.get(name, 0.0) - first.get(name, 0.0) for name in sorted({*first, *second})}


def cause(was: int | None, now: int | None, changes: Mapping[str, float]) -> str | None:
    """The signal whose lead changed most in the direction of the move; None where there is none."""
    if was is None or now is None or was == now or not changes:
        return None
    up = 1.0 if now < was else -1.0
    best = max(changes, key=lambda name: (up * changes[name], name))
    return best if up * changes[best] > SAME else None
