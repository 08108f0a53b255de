"""What every job shares: the base class of results, progress bars, text that fits a terminal or a page."""
