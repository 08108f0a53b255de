"""The table of signals, a row for each pair of query and candidate, and how lists become one."""
