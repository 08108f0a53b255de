"""What a search is asked to do, as a value and as a weights file."""

from steelyard.config.search_config import SearchConfig

__all__ = ["SearchConfig"]
