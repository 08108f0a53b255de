"""Recordings: the retrievers run once over many queries, replayed under any configuration."""
