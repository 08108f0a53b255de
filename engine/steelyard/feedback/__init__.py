"""What was shown and what was used: the log of a search, and searches that explore another ranking."""

from steelyard.feedback.log import FeedbackLog

__all__ = ["FeedbackLog"]
