"""Fast evaluation of many weights over one recording, for searching; reports use the engine instead."""

from steelyard_eval.weights.kernel.form import Form, forms
from steelyard_eval.weights.kernel.kernel import Kernel

__all__ = ["Form", "Kernel", "forms"]
