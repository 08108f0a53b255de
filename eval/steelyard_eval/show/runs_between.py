"""What differs between two kept runs, and what the newest one gained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard_eval.common.markup import number
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.faults import counted
from steelyard_eval.datasets.states import moved
from steelyard_eval.recording.runs import PARTS, KeptRow, KeptRun, states_of

NAMED = 5
"""Queries that are named where lists changed, and contenders whose means moved."""
Pairs = dict[str, tuple[KeptRow, KeptRow]]
"""A contender of two runs, before and after, by its newer name."""


def changes(dataset: Dataset, one: KeptRun, other: KeptRun) -> Iterator[str]:
    """A line for everything that differs between two runs, below one on what that says of the contenders."""
    before, after = states_of(dataset, one), states_of(dataset, other)
    reasons = list(_incomparable(one, other, before, after))
    pairs = _pairs(one, other)
    rest = [
        *_alone(one, other, pairs),
        *_renamed(one, pairs),
        *_settings(one, other),
        *_weights(pairs),
        *(_alike(one, other, before, after, pairs) if reasons else ()),
        *_means(pairs, bool(reasons)),
    ]
    if one.facts.get("chosen") != other.facts.get("chosen"):
        rest.append(f"chosen: {_or_none(one.facts.get('chosen'))} to {_or_none(other.facts.get('chosen'))}")
    lists = before.get("ranked") or {}
    renamed = {label: lists[old["label"]] for label, (old, _) in pairs.items() if old["label"] in lists}
    rest += _ranked(renamed, after.get("ranked") or {})
    if reasons:
        yield f"Not comparable: {'; '.join(reasons)}"
    elif rest or one.facts.get("rows") != other.facts.get("rows"):
        yield f"Same data and labels: {_verdict(pairs)}"
    yield from rest


def moved_parts(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """What differs between two runs, in a word each.

    Lists are named where nothing else explains that they differ: the contenders and the labels are the same.
    """
    kept = {name: (one.states.get(name), other.states.get(name)) for name in PARTS}
    moved = [name for name, (a, b) in kept.items() if a != b]
    same = [[(row["label"], *_configuration(row)) for row in run.facts.get("rows", ())] for run in (one, other)]
    if moved != ["ranked"] or not all(kept["ranked"]) or sorted(same[0]) != sorted(same[1]):
        moved = [name for name in moved if name != "ranked"]
    yield from (PARTS[name] for name in moved)
    if any(_weights(_pairs(one, other))):
        yield "weights"


def newest(dataset: Dataset, runs: Sequence[KeptRun]) -> Iterator[str]:
    """What the last run found, against the last before it that measured one of its contenders by the same metric.

    Where neither data nor labels nor weights differ, also against the last one before any of them changed.
    """
    measured = [run for run in runs if run.best]
    told = False
    for before in measured[-2::-1]:
        last = measured[-1]
        pairs = _pairs(before, last)
        if not pairs or any(before.facts.get(name) != last.facts.get(name) for name in ("metric", "split")):
            continue
        reasons = list(_incomparable(before, last, states_of(dataset, before), states_of(dataset, last)))
        weights = any(_weights(pairs))
        if told and not (reasons or weights):
            continue
        same = "same data and labels" + (", other weights" if weights else "")
        how = f"not comparable, {'; '.join(reasons)}" if reasons else f"{same}: {_verdict(pairs)}"
        yield f"Run {last.id} beside run {before.id}: {how}"
        if reasons:
            yield from _alike(before, last, states_of(dataset, before), states_of(dataset, last), pairs)
        told = True
        if reasons or weights:
            return


def _incomparable(
    one: KeptRun, other: KeptRun, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[str]:
    """Why means of two runs measure something else."""
    for name in ("metric", "split"):
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b:
            yield f"{name} {_or_none(a)} to {_or_none(b)}"
    for name in ("entries", "queries", "labels"):
        if one.states.get(name) != other.states.get(name):
            both = name in before and name in after
            yield f"{name} {moved(before[name], after[name], named=NAMED) if both else 'changed'}"


def _alike(
    one: KeptRun, other: KeptRun, before: Mapping[str, Any], after: Mapping[str, Any], pairs: Pairs
) -> Iterator[str]:
    """How contenders did on the queries that both runs asked and judged alike, as far as values are kept."""
    if any(one.facts.get(name) != other.facts.get(name) for name in ("metric", "split")):
        return
    parts = [(before.get(name, {}), after.get(name, {})) for name in ("labels", "queries")]
    alike = {query for query in parts[0][1] if all(a.get(query) == b.get(query) for a, b in parts)}
    unknown = 0
    for label, (old, _) in pairs.items():
        a, b = before.get("ranked", {}).get(old["label"]), after.get("ranked", {}).get(label)
        if not a or not b:
            unknown += 1
            continue
        both = sorted(query for query in alike & a.keys() & b.keys() if None not in (a[query][0], b[query][0]))
        on = f"{label}, on the {len(both)} of {counted(len(a.keys() | b.keys()), 'query', 'queries')}"
        means = [sum(part[query][0] for query in both) / len(both) for part in (a, b)] if both else []
        told = f": {_change(*means)}" if both else ": nothing to compare"
        yield f"{on} with the same labels in both runs{told}"
    if unknown:
        whose = "other contender" if len(pairs) > unknown else "contender"
        yield (
            f"of {counted(unknown, whose)} no values by query are kept: `steelyard compare` with the weights "
            "files of both runs tells on today's labels"
        )


def _alone(one: KeptRun, other: KeptRun, pairs: Pairs) -> Iterator[str]:
    """Contenders that only one of two runs has."""
    for run, both in ((one, {old["label"] for old, _ in pairs.values()}), (other, {*pairs})):
        alone = [row["label"] for row in run.facts.get("rows", ()) if row["label"] not in both]
        if alone:
            more = f"; {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            yield f"only run {run.id} has {'; '.join(alone[:NAMED])}{more}"


def _renamed(one: KeptRun, pairs: Pairs) -> Iterator[str]:
    """Contenders that had another name in the run before."""
    for label, (old, _) in pairs.items():
        if old["label"] != label:
            yield f"{label} was called {old['label']} in run {one.id}"


def _settings(one: KeptRun, other: KeptRun) -> Iterator[str]:
    for name, what in (("tool", "tool"), ("code", "commit"), ("model", "model"), ("limit", "limit")):
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b:
            yield f"{what}: {_short(a)} to {_short(b)}"


def _weights(pairs: Pairs) -> Iterator[str]:
    for label, (old, row) in pairs.items():
        if old.get("strategy") != row.get("strategy"):
            yield f"weights of {label}: {_or_none(old.get('strategy'))} to {_or_none(row.get('strategy'))}"


def _pairs(one: KeptRun, other: KeptRun) -> Pairs:
    """Both rows of each contender of both runs, the worst change first.

    It is the same by name and configuration, else by configuration, whatever it was called, else by name.
    """
    before, after = (list(run.facts.get("rows", ())) for run in (one, other))
    pairs = []
    for same in (lambda row: (row["label"], _configuration(row)), _configuration, lambda row: (row["label"],)):
        olds, news = Counter(map(same, before)), Counter(map(same, after))
        alike = [key for key in news if key and news[key] == olds[key] == 1]
        for key in alike:
            old, new = (next(row for row in rows if same(row) == key) for rows in (before, after))
            before.remove(old)
            after.remove(new)
            pairs.append((old, new))
    return {new["label"]: (old, new) for old, new in sorted(pairs, key=lambda pair: _gain(*pair))}


def _configuration(row: KeptRow) -> tuple[object, ...]:
    """What makes a contender what it is, as far as it is kept; nothing where that is unknown."""
    strategy = row.get("strategy")
    return (strategy, row.get("system"), row.get("profile")) if strategy else ()


def _gain(old: KeptRow, new: KeptRow) -> float:
    return round(new["mean"] - old["mean"], 9)  # what differs by less is how sums were rounded


def _verdict(pairs: Pairs) -> str:
    """How many means moved either way, and the ones that did most, in words."""
    gains = {label: _gain(*pair) for label, pair in pairs.items()}
    fell = [f"{label} by {number(-gain, 4)}" for label, gain in gains.items() if gain < 0]
    rose = [f"{label} by {number(gain, 4)}" for label, gain in gains.items() if gain > 0][::-1]
    told = [
        f"{len(texts)} {how} ({'most ' if len(texts) > 1 else ''}{texts[0]})"
        for texts, how in ((fell, "fell"), (rose, "rose"))
        if texts
    ]
    if not pairs:
        return "no contender is in both runs"
    if len(pairs) == 1:
        (only,) = gains
        how = f"fell by {number(-gains[only], 4)}" if fell else f"rose by {number(gains[only], 4)}"
        return f"{only}, the only contender in both runs, {how if fell or rose else 'did not move'}"
    return f"of {len(pairs)} contenders in both runs {' and '.join(told) or 'none moved'}"


def _means(pairs: Pairs, apart: bool) -> Iterator[str]:
    """The means that moved most, the worst first, and how many more did."""
    gaps = {label: gain for label, pair in pairs.items() if (gain := _gain(*pair))}
    most = sorted(gaps, key=lambda label: -abs(gaps[label]))[:NAMED]
    for label in (label for label in gaps if label in most):
        told = _change(*(row["mean"] for row in pairs[label]))
        yield f"{label}{', over all queries and labels of each run' if apart else ''}: {told}"
    if rest := len(gaps) - len(most):
        yield f"{rest} more moved less"


def _change(old: float, new: float) -> str:
    gain = round(new - old, 9)
    return f"{number(old, 4)} to {number(new, 4)} ({number(gain, 4, signed=True)})"


def _short(value: object) -> str:
    text = _or_none(value)
    return text[:12] if len(text) == 40 else text


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


def _ranked(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for label in [label for label in other if label in one]:
        both = [query for query in other[label] if query in one[label]]
        moved = [query for query in both if one[label][query][1] != other[label][query][1]]
        if not moved:
            continue
        gaps = {query: (other[label][query][0] or 0) - (one[label][query][0] or 0) for query in moved}
        most = sorted((query for query in moved if gaps[query]), key=lambda query: (-abs(gaps[query]), query))[
            :NAMED
        ]
        named = ", ".join(f"{query} {number(gaps[query], signed=True)}" for query in most)
        yield f"{label}: {len(moved)} of {len(both)} lists changed" + (f", most {named}" if named else "")
