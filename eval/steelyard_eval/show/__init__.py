"""How results are shown: text, figures and reports. Results know them by name only (`common/renderers.py`)."""

from steelyard_eval.common.later import later
from steelyard_eval.common.renderers import register

with later(__name__):  # a result that is not drawn loads no matplotlib
    from steelyard_eval.show.figures import compared, floored, learned, recommended, tuned
    from steelyard_eval.show.plots import changes, contributions, counts
    from steelyard_eval.show.report import write_report

register(
    compared=compared,
    floor=floored,
    learned=learned,
    recommended=recommended,
    tuned=tuned,
    changes=changes,
    contributions=contributions,
    counts=counts,
    report=write_report,
)
