"""Compares configurations on the same queries."""

from steelyard_eval.compare.comparison import METRICS, compare
from steelyard_eval.compare.result import Comparison

__all__ = ["METRICS", "Comparison", "compare"]
