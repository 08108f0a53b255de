"""Exact search over weights, from all points along a line where a measure changes."""
