"""Reports of a result: one HTML file that needs no network, beside Markdown and JSON of the same content."""

from steelyard_eval.views.report.write import write

__all__ = ["write"]
