"""A fusion in one file: every list counts by the discount of DCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.fusion.ranks import RankSum


@dataclass(frozen=True)
class Discounted(RankSum):
    """``sum of weight / log2(rank + 1)`` over the lists that hold the entry; ranks start at 1."""

    keyword: ClassVar[str] = "discounted"
    shown_as: ClassVar[str] = "discounted ranks"
    beyond: ClassVar[str] = "no hybrid query adds 1 / log2(rank + 1)"
    formula: ClassVar[str] = "1 / log2(rank in {} + 1)"

    def points(self, rank: Floats, place: int) -> Floats:
        """See RankSum."""
        return 1.0 / np.log2(rank + 1.0)
