"""Explains the ranking of one query, signal by signal, and what another configuration changes."""

from steelyard_eval.explain.explanation import QueryExplanation, explain

__all__ = ["QueryExplanation", "explain"]
