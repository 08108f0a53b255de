"""Steelyard's workbench: replay labelled queries, compare strategies, tune weights, report.

Import from its modules: ``steelyard_eval.datasets.load``, ``steelyard_eval.compare.compare``,
``steelyard_eval.tune.tune``. Nothing is imported here, so the command line starts quickly.
"""

SYSTEMS = ("fts", "bm25", "vector", "echovault", "soleri", "moltnet")
"""What is compared where nothing else is said: the baselines, and every system as documented."""
