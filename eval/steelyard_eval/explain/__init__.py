"""Why is this query good or bad? One ranking, signal by signal, and what another configuration changes."""

from steelyard_eval.explain.configs import Named
from steelyard_eval.explain.query import QueryExplanation, explain

__all__ = ["Named", "QueryExplanation", "explain"]
