"""Compares configurations on the same queries."""

from steelyard_eval.compare.compare import METRICS, compare

__all__ = ["METRICS", "compare"]
