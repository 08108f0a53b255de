"""Types of the arrays that signals and facts are stored in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
"""Codes, and positions in lists."""
Indices = NDArray[np.int64]
"""Offsets, rows and counts."""
