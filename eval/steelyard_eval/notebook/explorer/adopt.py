"""Writes a choice made by hand as a weights file, with what can be promised of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import astuple, replace

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.config.search_config import SearchConfig
from steelyard_eval.choose.rule import shrinkage_factor
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.paired import difference_interval, mean_interval
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.notebook.explorer.bench import Bench
from steelyard_eval.recording.provenance import estimate, origin, promised

Record = dict[str, object]


def adopted(
    bench: Bench,
    config: SearchConfig,
    values: Floats,
    current: Floats,
    held_out: tuple[Floats, Floats] | None,
    now: Callable[[], float] = time.time,
) -> SearchConfig:
    """The configuration with its provenance: `chosen_by` is hand.

    The promise is the gain over the current one on the queries that were looked at, times what a gate leaves of
    it (`rule.shrinkage`), because a hand that follows the number chooses what happens to look good on them.
    Under `holdout` stands the gain on queries that were not looked at.

    Parameters
    ----------
    values, current : float64[Q]
        The chosen and the current one on the queries that were looked at.
    held_out : two float64[H], or None
        The same on the queries held out.
    """
    gains = values - current
    numbers = np.array(bench.units)
    left, seen = shrinkage_factor(gains, numbers), difference_interval(gains, bench.units)
    promise = Gain.within(Interval(*(left * value for value in astuple(seen))), len(np.unique(numbers)))
    fingerprint = bench.trial(config).table.fingerprint
    record: Record = {
        **origin(bench.dataset, fingerprint, 0, now),
        "chosen_by": "hand",
        "objective": str(bench.measure),
        "certificate": "none",
        "in_sample": estimate(mean_interval(values, bench.units), len(values)),
        "baseline": estimate(mean_interval(current, bench.units), len(values)),
        "promise": promised(promise, str(bench.measure), len(values)),
    }
    if held_out is not None:
        after = difference_interval(np.subtract(*held_out), unit_numbers(bench.held_out).tolist())
        record["holdout"] = estimate(after, len(bench.held_out), least=-1.0)
    return replace(config, provenance=record)
