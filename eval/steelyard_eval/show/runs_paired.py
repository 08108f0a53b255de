"""Which contenders of two kept runs are the same, and what of their search differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from steelyard_eval.recording.runs import KeptRow, KeptRun

Pairs = dict[str, tuple[KeptRow, KeptRow]]
"""A contender of two runs, before and after, by its newer name."""


def weights(pairs: Pairs) -> Iterator[str]:
    """A line for each contender whose weights or settings differ."""
    for label, (old, row) in pairs.items():
        for name, what in (("strategy", "weights"), ("settings", "settings")):
            if old.get(name) != row.get(name):
                usual = "none" if name == "strategy" else "the usual ones"
                yield f"{what} of {label}: {old.get(name) or usual} to {row.get(name) or usual}"


def pairs_of(one: KeptRun, other: KeptRun) -> Pairs:
    """Both rows of each contender of both runs, the worst change first.

    It is the same by name and configuration, else by configuration, whatever it was called, else by name. What a
    run chose goes with the one weights file of another.
    """
    before, after = (list(run.facts.get("rows", ())) for run in (one, other))
    pairs = []
    for same in (lambda row: (row["label"], configuration(row)), configuration, lambda row: (row["label"],)):
        olds, news = Counter(map(same, before)), Counter(map(same, after))
        alike = [key for key in news if key and news[key] == olds[key] == 1]
        for key in alike:
            old, new = (next(row for row in rows if same(row) == key) for rows in (before, after))
            before.remove(old)
            after.remove(new)
            pairs.append((old, new))
    then, now = (_new_search(run) for run in (one, other))
    pairs += [(then, now)] if then and now and then in before and now in after else []
    return {new["label"]: (old, new) for old, new in sorted(pairs, key=lambda pair: gain_of(*pair))}


def answer_of(run: KeptRun) -> KeptRow | None:
    """The row of what a run says to use or try; else of its only weights file."""
    rows, answer = run.facts.get("rows", ()), run.answer
    own = [row for row in rows if answer and row.get("strategy") == answer.get("strategy")]
    files = [row for row in rows if row["label"].endswith(".json")]
    return own[0] if own else files[0] if len(files) == 1 else None


def _new_search(run: KeptRun) -> KeptRow | None:
    """What a run chose, or its weights file; under keep a system that is used was neither chosen nor edited."""
    row = answer_of(run)
    keep = run.facts.get("verdict") == "keep"
    return row if row and (row["label"].endswith(".json") or not keep) else None


def alike(run: KeptRun, earlier: Sequence[KeptRun]) -> Iterator[KeptRun]:
    """The runs before it that measured the same, the newest first.

    That is what it says to use or try, else what is used today, else anything, by the same metric and under the
    same restriction.
    """
    subject = answer_of(run) or run.row(str(run.facts.get("baseline")))
    for before in reversed(earlier):
        if all(before.facts.get(name) == run.facts.get(name) for name in ("metric", "split", "restriction")):
            both = [new for _, new in pairs_of(before, run).values()]
            if subject in both if subject else both:
                yield before


def configuration(row: KeptRow) -> tuple[object, ...]:
    """What makes a contender what it is, as far as it is kept; nothing where that is unknown."""
    strategy = row.get("strategy")
    return (strategy, *(row.get(name) for name in ("system", "profile", "settings"))) if strategy else ()


def written(row: KeptRow) -> str:
    """Its strategy and settings."""
    return " with ".join(filter(None, [row.get("strategy"), row.get("settings")])) or "-"


def gain_of(old: KeptRow, new: KeptRow) -> float:
    """By how much its mean rose."""
    return round(new["mean"] - old["mean"], 9)  # what differs by less is how sums were rounded
