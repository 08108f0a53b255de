"""Which weights does the feedback suggest? A log of what was shown and used, corrected for where it was shown."""

from steelyard_eval.learn.learned import Learned, learn

__all__ = ["Learned", "learn"]
