"""Steelyard's engine: hybrid search over an agent's memory as one table and one code path."""

__version__ = "0.1.0"
