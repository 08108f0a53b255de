"""Which weights? Search, then evidence: cross-validation, a holdout, and the verdict."""

from steelyard_eval.tune.tuner import Tuning, tune

__all__ = ["Tuning", "tune"]
