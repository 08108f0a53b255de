"""Which weights? Search, then proof: cross-validation, a holdout, and the verdict."""

from steelyard_eval.tune.tuner import Tuning, tune

__all__ = ["Tuning", "tune"]
