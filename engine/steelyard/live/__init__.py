"""Live search: candidates are fetched for one query, joined to a table, fused and finished."""
