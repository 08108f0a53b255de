"""Fast evaluation of many weights over one recording, for searching; reports use the engine instead."""

from steelyard_eval.candidates.kernel.form import Form, forms
from steelyard_eval.candidates.kernel.kernel import Kernel

__all__ = ["Form", "Kernel", "forms"]
