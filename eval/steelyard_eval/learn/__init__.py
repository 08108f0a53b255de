"""Which weights do labels and feedback suggest? A log of what was shown and used, corrected by labels."""

from steelyard_eval.learn.learned import Learned, learn

__all__ = ["Learned", "learn"]
