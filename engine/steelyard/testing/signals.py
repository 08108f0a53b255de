"""What every derived signal promises."""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard.grammar import Duration
from steelyard.signals import PRIORS
from steelyard.signals.formulas import SignalValues
from steelyard.table.signal_table import SignalTable
from steelyard.testing.tables import random_table, same_bits, select_queries, select_rows

SEEDS = range(25)


@cache
def _tables() -> tuple[SignalTable, ...]:
    return tuple(random_table(np.random.default_rng(seed), ties=bool(seed % 2)) for seed in SEEDS)


class SignalContract:
    """Inherit, and give a fixture `signal`: the name of a derived signal.

    `bounds` are the lowest and the highest value it may have.
    """

    bounds: tuple[float, float] = (0.0, 1.0)

    def bounds_of(self, signal: str) -> tuple[float, float]:
        """The bounds of one signal, where a test has several."""
        return self.bounds

    def compute(self, signal: str, table: SignalTable, **options: Duration | str) -> SignalValues:
        """The signal under its defaults and the given options."""
        return PRIORS[signal](table, options)

    def test_every_row_has_a_finite_value_within_bounds(self, signal: str) -> None:
        """Values are float64[N] without NaN."""
        low, high = self.bounds_of(signal)
        for table in _tables():
            values = self.compute(signal, table).values

            assert values.shape == (len(table),)
            assert values.dtype == np.float64
            assert np.isfinite(values).all()
            assert ((values >= low) & (values <= high)).all()

    def test_every_row_has_its_inputs(self, signal: str) -> None:
        """Inputs are float64[N], so that an explanation can show them."""
        for table in _tables():
            derived = self.compute(signal, table)

            assert derived.formula
            assert all(i.shape == (len(table),) and i.dtype == np.float64 for i in derived.inputs.values())

    def test_a_row_does_not_depend_on_other_queries(self, signal: str) -> None:
        """Each query alone gives the same bits."""
        for table in _tables():
            whole = self.compute(signal, table).values
            parts = [self.compute(signal, select_queries(table, [q])).values for q in range(len(table.queries))]

            assert same_bits(np.concatenate(parts), whole)

    def test_a_row_does_not_depend_on_other_rows(self, signal: str) -> None:
        """Adding rows changes nothing: any half of the rows has the values it has in the whole."""
        for seed, table in enumerate(_tables()):
            half = np.random.default_rng(seed).random(len(table)) < 0.5

            assert same_bits(
                self.compute(signal, select_rows(table, half)).values, self.compute(signal, table).values[half]
            )

    def test_lists_of_retrievers_do_not_matter(self, signal: str) -> None:
        """A derived signal reads facts only."""
        for table in _tables():
            bare = table.at_depth(dict.fromkeys(table.positions, 1))

            assert same_bits(self.compute(signal, bare).values, self.compute(signal, table).values)
