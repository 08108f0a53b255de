"""Metrics in trec_eval's dialect, TREC runs, and the statistics of both."""
