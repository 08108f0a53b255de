"""Judging: a query with all that was found for it, the labels that it gets, and how many more it takes."""
