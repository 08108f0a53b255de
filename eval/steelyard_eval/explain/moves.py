"""Compares two rankings of one query: which entries stayed, moved, entered or left, and by which signal.

Scores of two configurations have different scales: 12.3 from FTS5, 0.03 from RRF. So each
contribution is measured as a *standing*: its distance from the mean over the compared entries, as a
share of the distance between their best and their last score. The standings of an entry's signals
add up to the standing of its score. Multiplying all weights by one number changes no standing, and
a term that is equal for every entry has the standing 0, because it moves no entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.signals import PRIORS
from steelyard_eval.common.documents.explanation import MoveRecord, StandingRecord
from steelyard_eval.explain.view import View, contributions
from steelyard_eval.explain.without_signals import ListView

SAME = 1e-12
"""Changes closer to zero than this are rounding."""

Standing = dict[str, float]
"""By signal, how far it lifts an entry above the mean, as a share of the range of scores."""


def moves(before: View, after: View | ListView) -> list[MoveRecord]:
    """Make a record for every entry of either list, in the order of the second, then those that left.

    `by` is the signal whose standing changed most in the direction of the move, and for an entry that the first
    configuration does not rank the one that adds most to its score in the second. None when no signal did it,
    because other entries moved, or when the second list has no signals.
    """
    shown = [*after.listed, *(id_ for id_ in before.listed if id_ not in after.listed)]
    compared = [id_ for id_ in shown if id_ in before.ranked and id_ in after.ranked]
    if isinstance(after, ListView):
        return [_move(id_, before, after, None, None) for id_ in shown]
    first, second = (standings({id_: _parts(view, id_) for id_ in compared}) for view in (before, after))
    records = [_move(id_, before, after, first.get(id_), second.get(id_)) for id_ in shown]
    return [
        {**move, "by": _most(_parts(after, id_))} if id_ in after.listed and id_ not in before.ranked else move
        for id_, move in zip(shown, records, strict=True)
    ]


def _most(parts: Mapping[str, float]) -> str | None:
    """The signal that adds most to a score; None where none adds anything."""
    best = max(parts, key=lambda name: (parts[name], name), default=None)
    return best if best is not None and parts[best] > 0 else None


def standings(parts: Mapping[str, Mapping[str, float]]) -> dict[str, Standing]:
    """Compute the standing of every signal of these entries; all 0 when their scores are equal.

    `parts` has what each signal adds to the score of an entry.
    """
    names = {name for added in parts.values() for name in added}
    mean = {name: sum(added.get(name, 0.0) for added in parts.values()) / len(parts) for name in names}
    totals = [sum(added.values()) for added in parts.values()]
    spread = max(totals, default=0.0) - min(totals, default=0.0)
    return {
        id_: {n: (added.get(n, 0.0) - mean[n]) / spread if spread > 0 else 0.0 for n in sorted(names)}
        for id_, added in parts.items()
    }


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


def short_name(label: str) -> str:
    """Drop the options of a prior, so that recency of two half-lives is one signal; others are unchanged.

    >>> short_name("recency(half_life=69h)"), short_name("rrf(fts, vector, k=60)")
    ('recency', 'rrf(fts, vector, k=60)')
    """
    name = label.partition("(")[0]
    return name if name in PRIORS else label


def _move(
    id_: str, before: View, after: View | ListView, first: Standing | None, second: Standing | None
) -> MoveRecord:
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


def changed(first: Standing, second: Standing) -> dict[str, float]:
    """By how much the standing of each signal changed."""
    return {name: second.get(name, 0.0) - first.get(name, 0.0) for name in sorted({*first, *second})}


def cause(was: int | None, now: int | None, changes: Mapping[str, float]) -> str | None:
    """The signal whose standing changed most in the direction of the move; None where there is none."""
    if was is None or now is None or was == now or not changes:
        return None
    up = 1.0 if now < was else -1.0
    best = max(changes, key=lambda name: (up * changes[name], name))
    return best if up * changes[best] > SAME else None
