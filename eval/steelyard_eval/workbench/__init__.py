"""One object for all jobs on a data set, and the functions that make it."""

from steelyard_eval.workbench.workbench import Workbench, demo, load

__all__ = ["Workbench", "demo", "load"]
