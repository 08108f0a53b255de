"""Many weights over one recording: what search needs, and reports never do."""

from steelyard_eval.kernel.form import Form

__all__ = ["Form"]
