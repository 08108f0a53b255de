"""Fast evaluation of many weights over one recording, for searching; reports use the engine instead."""

from steelyard_eval.weights.kernel.form import Form, forms
from steelyard_eval.weights.kernel.kernel import Kernel
from steelyard_eval.weights.kernel.stream import streamed_means

__all__ = ["Form", "Kernel", "forms", "streamed_means"]
