"""Gains out of fold: the choice is made again without each fold of the queries, and counted on that fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from steelyard.base.arrays import Bools, Floats, Indices
from steelyard_eval.choose.scored import Evidence, likeliest
from steelyard_eval.decide.provenance import FOLDS


def gains_out_of_fold(evidence: Evidence, seed: int, row: Callable[[int], Floats], always: bool = False) -> Floats:
    """float64[n]: the gain out of fold of the ungated rule; `always` as for `chosen_out_of_fold`."""
    choices = chosen_out_of_fold(evidence, seed, always)
    rows = {candidate: row(candidate) for _, candidate in choices if candidate is not None}
    return gains_of_choices(rows, choices, evidence.metric.shape[1])


def folds(groups: Indices, seed: int) -> Indices:
    """int64[n]: the fold of each query; groups stay whole and are dealt by a seeded shuffle."""
    known, code = np.unique(groups, return_inverse=True)
    dealt: Indices = np.random.default_rng(seed).permutation(len(known)) % FOLDS
    return dealt[code]


def chosen_out_of_fold(evidence: Evidence, seed: int, always: bool = False) -> list[tuple[Bools, int | None]]:
    """For every fold the queries in it, bool[n], and what `best` chooses without them.

    `always` chooses where none lies above 0, too: what is used today cannot be kept.
    """
    fold = folds(evidence.groups, seed)
    parts = [fold == number for number in np.unique(fold)]
    if len(parts) == 1:
        return [(parts[0], None)]
    return [(part, likeliest(evidence.of_composite_without(part), always)) for part in parts]


def gains_of_choices(rows: Mapping[int, Floats], choices: Sequence[tuple[Bools, int | None]], n: int) -> Floats:
    """float64[n]: the gain on every query of the candidate that was chosen without it; 0 where none was.

    `rows` holds the differences, float64[n], of the candidates that were chosen.
    """
    gains = np.zeros(n)
    for part, candidate in choices:
        if candidate is not None:
            gains[part] = rows[candidate][part]
    return gains
