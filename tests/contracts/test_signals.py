"""The derived signals that ship, and every fusion, alone and nested, keep the promises of their kind."""

from itertools import chain

import numpy as np
import pytest
from tests.unit.shared import beside

from steelyard.fusion.sums import TRIED
from steelyard.grammar import Duration
from steelyard.signals import PRIORS
from steelyard.testing import FusionContract, SignalContract, random_table

FACTORS = {"document_type": (0.6, 2.0), "spec_level": (1.0, 1.3)}
FACTORS |= {"importance_tier": (0.1, 2.0), "promised": (1.0, 1.5)}
"""The bounds of signals that are made to multiply."""


class TestDerivedSignals(SignalContract):
    def bounds_of(self, signal):
        return FACTORS.get(signal, self.bounds)

    @pytest.fixture(params=sorted(PRIORS))
    def signal(self, request):
        return request.param

    def test_the_contract_would_see_a_constant(self, signal):
        """Random tables hold facts that make every signal vary but the one that is constant by its name."""
        values = [self.compute(signal, random_table(np.random.default_rng(seed))).values for seed in range(5)]
        assert (len(np.unique(np.concatenate(values))) > 1) == (signal != "one")


class TestRecencyUnderOtherHalfLives(SignalContract):
    @pytest.fixture(params=[Duration(69, "h"), Duration(1, "d"), Duration(1e6, "d")], ids=str)
    def signal(self, request):
        self.half_life = request.param
        return "recency"

    def compute(self, signal, table, **options):
        return super().compute(signal, table, half_life=self.half_life, **options)


SIGNALS = ["fts", "vector", "l2", "tfidf", "cosine", "recency", "severity", "importance", "tags", "domain"]
NORMALIZED = [
    *(f"weighted_sum(0.3*fts, 0.7*vector, normalize={name})" for name in TRIED),
    *(f"weighted_sum(0.2*bm25, 0.3*tfidf, 0.5*recency(half_life=365d), normalize={name})" for name in TRIED),
]
STRATEGIES = beside(__file__, "strategies.json")["fused"]


@pytest.mark.parametrize("promise", [name for name in vars(FusionContract) if name.startswith("test_")])
def test_every_fusion_keeps_the_promise(promise):
    """One test for all of them: for a test of each, pytest would take longer than what is tested."""
    for strategy in (*SIGNALS, *NORMALIZED, *chain.from_iterable(STRATEGIES.values())):
        getattr(FusionContract(), promise)(strategy)
