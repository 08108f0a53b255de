"""Every fusion, alone and nested, keeps the promises of a strategy."""

import json
from itertools import chain
from pathlib import Path

import pytest

from steelyard.fusion.sums import TRIED
from steelyard.testing import FusionContract

SIGNALS = ["fts", "vector", "l2", "tfidf", "cosine", "recency", "severity", "importance", "tags", "domain"]
NORMALIZED = [
    *(f"weighted_sum(0.3*fts, 0.7*vector, normalize={name})" for name in TRIED),
    *(f"weighted_sum(0.2*bm25, 0.3*tfidf, 0.5*recency(half_life=365d), normalize={name})" for name in TRIED),
]
STRATEGIES = json.loads(Path(__file__).with_name("strategies.json").read_text("utf-8"))["fused"]


class TestFusions(FusionContract):
    @pytest.fixture(params=[*SIGNALS, *NORMALIZED, *chain.from_iterable(STRATEGIES.values())])
    def strategy(self, request):
        return request.param
