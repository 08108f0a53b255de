"""One object for all jobs on a data set, and the functions that make it."""

from steelyard_eval.workbench.loading import demo, load
from steelyard_eval.workbench.workbench import Workbench

__all__ = ["Workbench", "demo", "load"]
