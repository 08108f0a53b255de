"""What every job shares: the base class of results, progress bars, text that fits a terminal or a page."""

SYSTEMS = ("fts", "bm25", "vector", "echovault", "soleri", "moltnet")
"""What is compared where nothing else is said: the baselines, and the systems that every corpus can feed.

system-spec-kit needs relations and Cortex-Mem abstracts, so they are compared where they are named.
"""
