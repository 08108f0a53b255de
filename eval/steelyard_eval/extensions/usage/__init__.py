"""What agents did with a memory, read from the logs of other programs."""

from steelyard_eval.extensions.usage.gather import Gathered, gather, summary
from steelyard_eval.extensions.usage.kinds import KINDS

__all__ = ["KINDS", "Gathered", "gather", "summary"]
