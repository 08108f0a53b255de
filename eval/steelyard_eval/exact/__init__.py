"""Exact search over weights: every place along a line where a measure changes, and what follows."""
