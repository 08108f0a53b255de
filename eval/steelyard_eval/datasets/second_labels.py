"""Labels that were given twice: the file of the second ones, and how far both agree.

Wrong labels that lean to one retriever are a bias that every fold shares, so no gate finds them (docs/tuning.md).
What shows them is a second look at a few pairs, without seeing the first grade.
"""

import numpy as np

from steelyard.base.arrays import Floats
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.datasets.manifest import workshop
from steelyard_eval.result.structs import Fact, Message

SECOND = "second-labels.txt"  # second grades of pairs that have labels, in the form of qrels.txt
TEN = 10  # pairs that the answer asks a second judge for
LOW = 0.6  # a kappa below which labels say little (Landis & Koch, 1977: 0.61 on is substantial)


def judged_twice(dataset: Dataset) -> Message:
    """How far both labels agree: the share of equal grades, and `weighted_kappa`."""
    first, second = dataset.qrels, dataset.second
    common = [(row[e], second[q][e]) for q, row in first.items() for e in row if e in second.get(q, {})]
    if not common:
        again = ["steelyard", "judge", str(dataset.path), "--second-judge-of", "labels", "--judge", "again"]
        fixed = dataset.in_memory or dataset.path.resolve() == workshop().resolve()  # which is installed
        return Message("judged_once", {"count": TEN, "command": None if fixed else [*again]})
    a, b = np.array(common, dtype=np.float64).T
    kappa = weighted_kappa(a, b)
    facts: dict[str, Fact] = {"kappa": kappa, "low": kappa is not None and kappa < LOW}
    return Message("judged_twice", {"count": len(common), "equal": float((a == b).mean()), **facts})


def weighted_kappa(one: Floats, other: Floats) -> float | None:
    """Cohen's kappa with squared weights (1968) of the grades float64[n] of two judges, n at least 1.

    1 for equal grades, 0 for what chance gives, and None where both gave one grade only.
    """
    grades, given = np.unique(np.concatenate([one, other]), return_inverse=True)
    if (kinds := grades.size) < 2:
        return None
    both = np.bincount(given[: len(one)] * kinds + given[len(one) :], minlength=kinds**2).reshape(kinds, kinds)
    by_chance = np.outer(both.sum(axis=0), both.sum(axis=1)) / len(one)
    apart = np.subtract.outer(np.arange(kinds), np.arange(kinds)) ** 2  # in places of the grades that were given
    return float(1 - (apart * both).sum() / (apart * by_chance).sum())
