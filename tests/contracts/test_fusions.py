"""Every fusion, alone and nested, keeps the promises of a strategy."""

import pytest

from steelyard.fusion.sums import TRIED
from steelyard.testing import FusionContract

SIGNALS = ["fts", "vector", "l2", "tfidf", "cosine", "recency", "severity", "importance", "tags", "domain"]
COMBINATIONS = ["comb_sum", "comb_mnz", "comb_anz", "comb_med", "comb_max", "comb_min"]
SUMS = [
    *(f"weighted_sum(0.3*fts, 0.7*vector, normalize={name})" for name in TRIED),
    *(f"weighted_sum(0.2*bm25, 0.3*tfidf, 0.5*recency(half_life=365d), normalize={name})" for name in TRIED),
    "weighted_sum(0.25*tfidf, 0.15*cosine, 0.15*severity, 0.15*recency(half_life=365d), 0.15*tags, 0.15*domain)",
    "weighted_sum(0.2*tfidf, 0.3*cosine, 0.5*recency(half_life=365d), normalize=theoretical)",
    "weighted_sum(1*importance)",
    "weighted_sum(0*fts, 1*vector)",
]
RANKED = [
    "rrf(vector, fts, k=60)",
    "rrf(vector)",
    "rrf(vector, fts, k=0)",
    "rrf(importance, recency)",
    *(f"rrf(vector, fts, 1.5*bm25, k=60, bonus={bonus})" for bonus in ("times(0.1)", "once(0.1)", "each(0.1)")),
]
COMBINED = [
    *(f"{name}(fts, vector, bm25, normalize=minmax)" for name in COMBINATIONS),
    "comb_anz(fts, vector, tfidf, normalize=none)",
    "comb_mnz(fts, 2.5*vector, normalize=max)",
    "comb_med(importance, recency, normalize=none)",
    "comb_max(vector, normalize=rank)",
    "gated(vector, bm25, least=0.1)",
    "gated(vector, 2*bm25, 0.5*fts, least=0)",
    "weighted_sum(0.5*gated(vector, bm25), 0.5*recency, normalize=max)",
]
VOTED = [
    "isr(vector, fts)",
    "log_isr(vector, 2*fts, bm25)",
    "borda(vector, 0.5*fts, bm25)",
    "borda(vector, tfidf)",
    "rbc(vector, fts, phi=0.8)",
    "rbc(vector, 3*fts, phi=0)",
]
LAYERED = [
    "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
    "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=1.95, relax=[])",
    "layered(1*l2)",
    "layered(0.5*l0, 0.5*importance, threshold=1, relax=[0.7, 0.1])",
]
TIERED = [
    "tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    "tiered(fts, min_results=0, then=vector)",
    "tiered(fts, min_results=1000, then=vector)",
    "tiered(vector, min_results=4, then=importance)",
    "tiered(tfidf, min_results=4, then=vector)",
]
BY_INTENT = [
    "by_intent(default=rrf(fts, vector), fix=weighted_sum(1*fts, 0.5*recency), learn=vector)",
    "by_intent(default=fts, fix=importance)",
]
BOOSTED = [
    "boost(rrf(vector, fts, k=60, bonus=times(0.1)), document_type, 0.5*decay)",
    "boost(weighted_sum(0.3*fts, 0.7*vector, normalize=max), promised, importance_tier(scale=value), high=1.2)",
    "boost(fts, 0*popularity)",
    "boost(tiered(fts, min_results=4, then=rrf(vector, bm25)), 0.5*retrievability, length, low=0.5)",
    "boost(weighted_sum(1*tfidf), corrections, spec_level)",
    "rrf(boost(fts, decay), vector)",
    "weighted_sum(1*boost(rrf(fts, 1.5*graph), document_type), 0.1*importance)",
    "boost(boost(vector, decay), promised)",
]
NESTED = [
    "weighted_sum(1*rrf(vector, fts, k=60), 0.2*recency(half_life=69h), 0.1*importance)",
    "weighted_sum(1*rrf(vector, fts, bonus=times(0.1)), 0.5*bm25, normalize=max)",
    "weighted_sum(0.7*tiered(fts, min_results=4, then=vector), 0.3*recency, normalize=minmax)",
    "weighted_sum(0.5*bm25, 0.5*tiered(fts, min_results=6, then=importance), normalize=zscore)",
    "weighted_sum(0.5*weighted_sum(0.5*fts, 0.5*vector, normalize=max), 0.5*weighted_sum(1*bm25), normalize=rank)",
    "weighted_sum(1*layered(0.4*l0, 0.6*l2, threshold=0.6), 0.2*importance)",
    "rrf(weighted_sum(0.5*fts, 0.5*recency), tiered(bm25, then=vector), k=10, bonus=each(0.01))",
    "rrf(layered(0.5*l0, 0.5*l2, threshold=1.8, relax=[]), fts, k=5)",
    "rrf(rrf(fts, bm25), rrf(vector, l2, k=1, bonus=once(0.2)))",
    "tiered(tiered(fts, min_results=2, then=vector), min_results=5, then=bm25)",
    "tiered(fts, min_results=4, then=tiered(vector, min_results=6, then=rrf(fts, vector, bm25)))",
    "tiered(layered(0.5*l0, 0.5*l1, threshold=1.8), min_results=4, then=fts)",
    "tiered(fts, min_results=5, then=layered(0.2*l0, 0.3*l1, 0.5*l2))",
    "tiered(fts, then=by_intent(default=tiered(bm25, then=vector), fix=rrf(vector, l2)))",
    "by_intent(default=tiered(fts, min_results=6, then=vector), fix=layered(0.5*l0, 0.5*l2), learn=importance)",
    "tiered(fts, min_results=4, then=comb_mnz(fts, vector))",
    "weighted_sum(1*comb_max(fts, vector), 0.2*recency, normalize=max)",
    "comb_med(comb_max(fts, vector), rrf(bm25, vector), l2, normalize=zscore)",
    "rrf(borda(fts, isr(vector, bm25)), comb_min(fts, l2), k=10)",
    "by_intent(default=comb_anz(fts, vector), fix=log_isr(fts, vector), learn=rbc(fts, bm25))",
    "layered(0.3*rrf(l0, l1, k=1), 0.7*weighted_sum(0.5*l2, 0.5*recency, normalize=max), threshold=0.6)",
]


class TestFusions(FusionContract):
    @pytest.fixture(
        params=[*SIGNALS, *SUMS, *RANKED, *COMBINED, *VOTED, *LAYERED, *TIERED, *BY_INTENT, *BOOSTED, *NESTED]
    )
    def strategy(self, request):
        return request.param
