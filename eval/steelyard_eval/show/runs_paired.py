"""Which contender of two kept runs is compared, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import tee

from steelyard_eval.common.console import brief
from steelyard_eval.recording.runs import PARTS, KeptRow, KeptRun

DATA = ("entries", "queries", "labels")
"""The parts that are not the search."""
PROVENANCE = "provenance"
"""How labelled queries were drawn, which changes what labels prove, and no value."""
ALIKE = ("metric", "split", "restriction")
"""What runs that are held against each other share."""
SEARCH = {"strategy": "weights", "settings": "settings"}
"""What a search is, in a word each."""
SETTINGS = {"tool": "tool", "code": "commit", "model": "model", "limit": "limit", **{name: name for name in ALIKE}}


def own_of(run: KeptRun) -> KeptRow | None:
    """What a run is about: what it chose, else its only weights file; under keep nothing was chosen."""
    rows, keep = run.facts.get("rows", ()), run.facts.get("verdict") == "keep"
    strategy = None if keep else (run.chosen or {}).get("strategy")
    files = [row for row in rows if row["label"].endswith(".json")]
    chosen = [row for row in [*files, *rows] if strategy and row.get("strategy") == strategy]
    return chosen[0] if chosen else files[0] if len(files) == 1 else None


def pair_of(one: KeptRun, other: KeptRun) -> tuple[KeptRow, KeptRow] | None:
    """What both runs are about, else the first search that is in both: of either, of today, the best."""
    then, now = own_of(one), own_of(other)
    if then and now:
        return then, now
    later = [now, then and _same(other, then), other.today, *other.facts.get("rows", ())]
    return next(((old, new) for new in later if new and (old := _same(one, new))), None)


def alike(run: KeptRun, earlier: Sequence[KeptRun]) -> Iterator[KeptRun]:
    """The runs before it that measured the same in the same way: those of the same job first, then the newest.

    A gate that failed is the last of other jobs. Before the first of which both search and data differ go those
    with the same search: they tell what the data did.
    """
    ranked = (before for rank in range(3) for before in reversed(earlier) if _rank(before, run) == rank)
    found = (before for before in ranked if _comparable(before, run))
    for first in found:
        if searched(first, run) and {*DATA}.intersection(causes(first, run)):
            same, others = tee(found)
            yield from (before for before in same if not searched(before, run))
            yield first
            yield from (before for before in others if searched(before, run))
        else:
            yield first


def searched(one: KeptRun, other: KeptRun) -> bool:
    """Whether the two searches differ."""
    return not {*SEARCH.values()}.isdisjoint(causes(one, other))


def causes(one: KeptRun, other: KeptRun) -> list[str]:
    """What differs, in a word each.

    Lists are named where nothing else explains that they differ: the contenders and the labels are the same.
    """
    found = [name for name in DATA if one.states.get(name) != other.states.get(name)]
    how = [run.states.get(PROVENANCE) for run in (one, other)]
    found += [PROVENANCE] if all(how) and how[0] != how[1] else []  # earlier versions kept none
    if pair := pair_of(one, other):
        found += [what for name, what in SEARCH.items() if pair[0].get(name) != pair[1].get(name)]
    found += [line.partition(":")[0] for line in settings(one, other)]
    lists = [run.states.get("ranked") for run in (one, other)]
    rows = [{(row["label"], *configuration(row)) for row in run.facts.get("rows", ())} for run in (one, other)]
    return found or ([PARTS["ranked"]] if all(lists) and lists[0] != lists[1] and rows[0] == rows[1] else [])


def changed_for(one: KeptRun, other: KeptRun, row: KeptRow | None) -> str:
    """The same in a line, with the contender that was compared where this does not hold for `row`, too."""
    words, pair, then = ", ".join(causes(one, other)) or "nothing", pair_of(one, other), row and _same(one, row)
    if not pair or not row or pair[1] == row:
        return words
    moved = [configuration(old) != configuration(new) for old, new in (pair, (then, row)) if old]
    return words if moved in ([True, True], [False, False]) else f"{words} ({pair[1]['label']})"


def failed(run: KeptRun) -> bool:
    """Whether it is a gate that failed: nobody searched with what it measured."""
    return run.kind == "gate" and run.facts.get("verdict") == "fail"


def settings(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """A line for each setting that differs; a gate keeps no model and no limit."""
    for name, what in SETTINGS.items():
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b and (name in ALIKE or (a and b)):
            yield f"{what}: {_short(a)} to {_short(b)}"


def configuration(row: KeptRow) -> tuple[object, ...]:
    """What makes a contender what it is, as far as it is kept; nothing where that is unknown."""
    strategy = row.get("strategy")
    return (strategy, *(row.get(name) for name in ("system", "profile", "settings"))) if strategy else ()


def written(row: KeptRow) -> str:
    """Its strategy and settings."""
    return brief(" with ".join(filter(None, [row.get("strategy"), row.get("settings")])) or "-")


def _comparable(before: KeptRun, run: KeptRun) -> bool:
    if any(before.facts.get(name) != run.facts.get(name) for name in ALIKE):
        return False
    pair = pair_of(before, run)
    return pair is not None and pair[1] == (own_of(run) or pair[1])


def _rank(before: KeptRun, run: KeptRun) -> int:
    """0 of the same job, 2 of a gate that failed, else 1."""
    return 0 if before.kind == run.kind else 1 + failed(before)


def _same(run: KeptRun, row: KeptRow) -> KeptRow | None:
    """The same search in another run, whatever it is called there; else what has the same name."""
    rows = run.facts.get("rows", ())
    by_search = [one for one in rows if configuration(row) and configuration(one) == configuration(row)]
    by_name = [one for one in by_search or rows if one["label"] == row["label"]]
    return next(iter([*by_name, *by_search]), None)


def _short(value: object) -> str:
    text = str(value or "none")
    return text[:12] if len(text) == 40 else text
