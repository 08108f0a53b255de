"""Compares configurations on the same queries."""

from steelyard_eval.compare.comparison import METRICS, Comparison, compare

__all__ = ["METRICS", "Comparison", "compare"]
