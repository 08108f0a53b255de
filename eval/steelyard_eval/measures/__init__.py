"""Metrics as trec_eval defines them, TREC runs, and statistics of metrics."""
