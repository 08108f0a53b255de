"""Judging: which pairs of query and entry to label first, what the labels settle, and what is still open."""
