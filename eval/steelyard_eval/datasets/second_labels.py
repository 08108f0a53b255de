"""Labels that were given twice: which to ask again, the file of the second ones, and how far both agree.

Wrong labels that lean to one retriever are a bias that every fold shares, so no gate finds them (docs/tuning.md).
What shows them is a second look at a few pairs, without seeing the first grade.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard.base.files import write_text
from steelyard_eval.datasets.dataset import Dataset
from steelyard_eval.result.structs import Fact, Said

SECOND = "second-labels.txt"  # second grades of pairs that have labels, in the form of qrels.txt
TEN = 10  # pairs that are asked again
LOW = 0.6  # a kappa below which labels say little (Landis & Koch, 1977: 0.61 on is substantial)


def to_ask_again(dataset: Dataset, count: int = TEN, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of query and entry without a second label, drawn at random, half of them relevant if so many are."""
    pairs = [(q, e) for q, row in sorted(dataset.qrels.items()) for e in row if e not in dataset.second.get(q, {})]
    drawn = [pairs[at] for at in np.random.default_rng(seed).permutation(len(pairs))]
    relevant = [(q, e) for q, e in drawn if dataset.qrels[q][e] > 0][: count // 2]
    return sorted([*relevant, *[pair for pair in drawn if pair not in relevant][: count - len(relevant)]])


def keep_second(dataset: Dataset, grades: Mapping[tuple[str, str], int]) -> None:
    """Write second labels into the data set's folder, in qrels' own form, beside those that stand there."""
    known = {(q, e): grade for q, row in dataset.second.items() for e, grade in row.items()} | dict(grades)
    write_text(dataset.path / SECOND, "".join(f"{q} 0 {e} {grade}\n" for (q, e), grade in sorted(known.items())))


def judged_twice(dataset: Dataset) -> Said:
    """How far both labels agree: the share of equal grades, and Cohen's kappa with squared weights (1968).

    Kappa is 1 for equal grades, 0 for what chance gives, and not known where only one grade was given.
    """
    first, second = dataset.qrels, dataset.second
    common = [(row[e], second[q][e]) for q, row in first.items() for e in row if e in second.get(q, {})]
    if not common:
        return Said("judged_once", {"count": TEN, "file": SECOND})
    a, b = np.array(common, dtype=np.float64).T
    chance = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    kappa = 1 - float(((a - b) ** 2).mean()) / chance if chance else None
    facts: dict[str, Fact] = {"kappa": kappa, "low": kappa is not None and kappa < LOW}
    return Said("judged_twice", {"count": len(common), "equal": float((a == b).mean()), **facts})
