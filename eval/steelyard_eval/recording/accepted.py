"""What `check --accept` says of changed files: what differs since the last kept run, and what is doubtful then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from steelyard.base.errors import DataError
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.folder import kept_labels
from steelyard_eval.datasets.states import NAMED, moved
from steelyard_eval.recording.runs import kept, parts_of, states_of

Labels = Mapping[str, Mapping[str, int]]


def moved_since_last(dataset: Dataset) -> list[str]:
    """What is no longer as the last kept run measured it, a line a part; nothing where that cannot be told.

    Where all is said to be judged, also what relevant labels that came or went say of that, unless the labels are
    those that `judge --apply` had replaced.
    """
    with suppress(DataError):
        for run in [run for run in kept(dataset) if run.facts.verdict != "mismatch"][-1:]:
            before, now = states_of(dataset, run), parts_of(dataset)
            told = {name: moved(before.get(name) or part, part, named=NAMED) for name, part in now.items() if part}
            lines = [f"{name} since run {run.id}: {change}" for name, change in told.items() if change]
            replaced = kept_labels(dataset)
            doubtful = dataset.complete and not (replaced and replaced[1] == dataset.qrels)
            return [*lines, *(_incomplete(before.get("labels", {}), dataset.qrels) if doubtful else ())]
    return []


def _incomplete(before: Labels, now: Labels) -> Iterator[str]:
    """What is doubtful where an entry without a label is said not to be relevant."""
    counts = {"gone": _relevant_alone(before, now), "new": _relevant_alone(now, before)}
    if before and any(counts.values()):
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        yield (
            f"labels of relevant entries: {told}. dataset.json says that all is judged (pool: complete), so what "
            'has no label counts as not relevant; if that is wrong, take "pool" out of it'
        )


def _relevant_alone(these: Labels, those: Labels) -> int:
    """How many entries these labels call relevant, and those do not name."""
    return sum(
        grade > 0 and entry not in those.get(query, {})
        for query, own in these.items()
        for entry, grade in own.items()
    )
