"""How results are shown: text, figures and reports. Results know them by name only (`common/renderers.py`)."""

from steelyard_eval.common.renderers import register

register(
    compared="steelyard_eval.show.figures:compared",
    learned="steelyard_eval.show.figures:learned",
    recommended="steelyard_eval.show.figures:recommended",
    gated="steelyard_eval.show.figures:gated",
    contributions="steelyard_eval.views.drawing.plots:contributions",
    counts="steelyard_eval.views.drawing.plots:counts",
    latex="steelyard_eval.show.latex:latex",
    comparison_text="steelyard_eval.show.terminal:compared",
    recommendation_text="steelyard_eval.show.terminal:recommendation",
    report="steelyard_eval.show.report:write_report",
)
