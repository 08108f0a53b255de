"""Steelyard's workbench: replay labelled queries, compare strategies, tune weights, report."""
