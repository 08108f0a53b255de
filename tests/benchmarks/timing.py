"""Racing contenders in one process: each input goes to every contender in turn, so noise hits all alike."""

import importlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


def peer(name):
    """A module to race against; None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class DisagreementError(Exception):
    """Two contenders gave different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Race:
    """Times of contenders at one task; the first contender is ours, what others are measured against.

    `samples` are milliseconds by contender: of the clock, and of the processor. `document` names a seed
    document and the figure (milliseconds) that it gives for the task. `recall` is by contender, see `recall`.
    """

    group: str
    case: str
    samples: Mapping[str, Sequence[tuple[float, float]]]
    latency: bool = False
    document: tuple[str, float] | None = None
    notes: tuple[str, ...] = field(default=())
    recall: Mapping[str, float] = field(default_factory=dict)

    def rows(self):
        """One record a contender: medians, p95 where single queries were timed, ratio to ours.

        The ratio is of medians of processor time, which other programs on the machine disturb least.
        """
        ours = float(np.median([cpu for _, cpu in next(iter(self.samples.values()))]))
        made = []
        for name, taken in self.samples.items():
            wall, cpu = np.array(taken).T
            row = {"group": self.group, "case": self.case, "contender": name, "ours": name.startswith("steelyard")}
            row |= {"median_ms": float(np.median(wall)), "cpu_ms": float(np.median(cpu)), "samples": len(taken)}
            row |= {"p95_ms": float(np.percentile(wall, 95)) if self.latency else None}
            made.append(row | {"ratio": row["cpu_ms"] / ours, "recall_10": self.recall.get(name)})
        return made


def race(contenders, inputs, rounds):
    """Milliseconds (clock, processor) of every contender on every input, `rounds` times over.

    One call of each warms up. Who goes first changes from input to input.
    """
    order = list(contenders)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in order}
    for name in order:
        contenders[name](inputs[0])
    for at in range(rounds * len(inputs)):
        for name in order[at % len(order) :] + order[: at % len(order)]:
            begin, worked = time.perf_counter(), time.process_time()
            contenders[name](inputs[at % len(inputs)])
            taken[name].append(((time.perf_counter() - begin) * 1e3, (time.process_time() - worked) * 1e3))
    return taken


def recall(contenders, inputs, k=10):
    """Of the first k ids of the first contender, the share that each finds among its own, in the mean.

    The contenders give ids, best first.
    """
    truth = [list(next(iter(contenders.values()))(own))[:k] for own in inputs]

    def share(find):
        pairs = zip(inputs, truth, strict=True)
        return float(np.mean([len(set(ids) & set(list(find(own))[:k])) / max(1, len(ids)) for own, ids in pairs]))

    return {name: share(find) for name, find in contenders.items()}


def once(work):
    begin = time.perf_counter()
    made = work()
    return made, time.perf_counter() - begin


def same_scores(what, ours, theirs, tolerance):
    """DisagreementError unless both lists of scores, best first, are equal up to a relative tolerance.

    Scores and not ids are compared, because contenders order ties differently.
    """
    if len(ours) != len(theirs) or not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
        raise DisagreementError(
            f"{what}: {list(ours)[:5]} beside {list(theirs)[:5]}, {len(ours)} beside {len(theirs)}"
        )
