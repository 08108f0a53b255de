"""Reports of a comparison: one HTML file that needs no network, beside Markdown and JSON of the same content."""

from steelyard_eval.show.report.load import load_results
from steelyard_eval.show.report.render import write_report

__all__ = ["load_results", "write_report"]
