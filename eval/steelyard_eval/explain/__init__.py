"""Why is this query good or bad? One ranking, signal by signal, and what another configuration changes."""

from steelyard_eval.explain.query import QueryExplanation, explain

__all__ = ["QueryExplanation", "explain"]
