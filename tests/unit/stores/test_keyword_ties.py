"""Keyword lists are cut by score and id, however many entries tie across the cut."""

import pytest

from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite import Vault

TIES = 32
INDEX = KeywordIndex("content", ("title", "text"))


@pytest.fixture(scope="module")
def vault():
    """Three good matches, then more equal ones than the cut takes; ids against insertion order."""
    size = 2 * TIES + 20
    with Vault(":memory:") as made:
        made.upsert(Entry(f"tie{at:03d}", text="token cache", project="p") for at in reversed(range(size)))
        made.upsert(Entry(f"best{at}", text="token token", project="p") for at in (2, 0, 1))
        made.upsert(Entry(f"other{at:03d}", text="graph retry", project="p") for at in range(2 * size))
        yield made


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 20, TIES, TIES + 3, 2 * TIES + 22, 2 * TIES + 23, 500, -1])
@pytest.mark.parametrize("filters", [EVERYTHING, Filters.of({"project": "p"})])
def test_the_cut_is_by_score_and_then_by_id(vault, depth, filters):
    found = vault.keyword(INDEX, '"token"', [1.0, 1.0], filters, depth)

    expected = [f"best{at}" for at in range(3)] + [f"tie{at:03d}" for at in range(2 * TIES + 20)]
    assert [one.id for one in found] == (expected if depth < 0 else expected[:depth])
    assert [one.position for one in found] == list(range(1, len(found) + 1))
