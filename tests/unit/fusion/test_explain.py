"""Explanations: trees that add up, print and become JSON."""

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.fusion import compile_plan, parse_strategy
from steelyard.fusion.plan import Explanation
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.testing import random_table
from steelyard.testing.fusions import recomputed
from steelyard_eval.recording.replay import contributions


def leaf(value, text="leaf"):
    return Explanation(value, text)


class TestTree:
    def test_a_wrong_value_shows(self):
        """Otherwise comparing with the recomputed value proves nothing."""
        assert recomputed(Explanation(9.0, "s", (leaf(1.0), leaf(2.0)), "sum")) == 3.0


class TestStrategies:
    def test_the_inputs_shown_give_the_value_shown(self):
        """rank r in a list of k = 60 must stand beside 1 / (60 + r)."""
        table = random_table(np.random.default_rng(4))
        plan = compile_plan(table, parse_strategy("rrf(fts, k=60)"))
        for row in np.flatnonzero(~np.isnan(plan.scores())):
            weight, column = plan.explain(int(row)).parts[0].parts
            rank = next(part for part in column.parts if part.text == "rank")
            assert (weight.value, column.value) == (1.0, 1 / (60 + rank.value))

    def test_a_hit_is_explained_and_a_stranger_is_not(self):
        with Vault(":memory:") as vault:
            vault.upsert([Entry("a", text="cache"), Entry("b", text="other")])
            result = Searcher(vault, find_system("fts").config()).search(Query("cache"))

        assert recomputed(result.explain("a")) == result.hits[0].score
        with pytest.raises(ConfigError, match="entry 'b'"):
            result.explain("b")


@pytest.mark.parametrize(
    "text",
    [
        "weighted_sum(0.3*fts, 0.7*vector, normalize=max)",
        "tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
        "rrf(fts, 1.5*vector, k=60, bonus=times(0.1))",
        "weighted_sum(1*rrf(vector, fts, k=60), 0.2*severity)",
        "comb_mnz(fts, vector, normalize=minmax)",
    ],
)
def test_what_the_terms_add_is_the_score(text):
    table = random_table(np.random.default_rng(5), 40)
    plan = compile_plan(table, parse_strategy(text))
    rows = np.flatnonzero(np.isfinite(plan.scores()))
    names, parts = contributions(plan, rows)
    assert len(names) == parts.shape[1]
    np.testing.assert_allclose(parts.sum(axis=1), plan.scores()[rows], rtol=1e-12, atol=1e-12)
