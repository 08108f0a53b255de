"""Signals that are derived from facts: pure functions of a table, vectorised over its rows.

To add one, write ``name(table, **options) -> SignalValues`` in its own file as a `DerivedSignal`; list it here.
"""

from steelyard.node import Registry
from steelyard.signals.formulas import FORMULAS, DerivedSignal

PRIORS: Registry[DerivedSignal] = Registry("signal", "name", (*FORMULAS,))
