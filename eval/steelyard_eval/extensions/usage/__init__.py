"""What agents did with a memory, read from the logs of other programs."""

from steelyard_eval.extensions.usage.gather import KINDS, UsageLog, gather

__all__ = ["KINDS", "UsageLog", "gather"]
