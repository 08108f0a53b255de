"""Several vaults read as one: which copy stands, what it weighs, and whose vectors are searched.

That a federation reads like a store is in tests/contracts/test_stores.py."""

import numpy as np
import pytest
from shared import tabled, vault_with

from steelyard import Entry, Filters
from steelyard.base.errors import ConfigError
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex, Space, copy_key
from steelyard.stores.federation import Federation, FederationRule, Tier

INDEX = KeywordIndex("sample", ("title", "text"))
SPACE = Space("model", "text", "{text}")
EAST = np.array([1, 0], dtype=np.float32)
BEST = FederationRule(best_copy=True)
FILLER = [Entry(f"filler{i}", text="nothing of the kind") for i in range(9)]
"""A word in more than half of a vault weighs next to nothing; these keep the words rare."""


def tier(name, *entries, priority=None, cosines=None):
    """A vault in memory; `cosines` places the vectors of some entries by their cosine with `EAST`."""
    vault = vault_with(*entries)
    if cosines:
        sides = [[value, (1 - value * value) ** 0.5] for value in cosines.values()]
        vault.put_vectors(SPACE, list(cosines), np.array(sides, dtype=np.float32))
    return Tier(name, vault, priority)


def keyword(federation, word="heron", depth=10):
    return federation.keyword(INDEX, word, [1.0, 1.0], EVERYTHING, depth)


def nearest(federation, depth=10, filters=EVERYTHING, filter_first=True):
    return federation.nearest(SPACE, EAST, filters, depth, filter_first)


def copies(items):
    """[(id, tier), ...]."""
    return [tuple(item.id.split("\x1f")) for item in items]


def herons(count, start=0):
    """Entries that all say the word, the later the longer, so that the first matches best."""
    return [Entry(f"h{i}", title="heron", text="filler " * i) for i in range(start, start + count)]


def test_the_copy_that_stands_hides_the_others_even_where_it_does_not_match():
    agent, team = tier("agent", Entry("a", text="newt", project="p0")), tier("team", Entry("a", text="heron"))
    federation = Federation([agent, team])
    outside = Filters.of({"project": {"none": ["p0"]}})
    assert keyword(federation) == []
    assert list(federation.entries(outside)) == []
    assert federation.recent(outside, 9) == []
    assert (federation.count(), federation.count(outside)) == (1, 0)


@pytest.mark.parametrize("rule", [None, BEST])
def test_an_entry_is_there_once(rule):
    same = Entry("a", text="heron", created_at=1.0)
    tiers = [tier(name, same, *FILLER, cosines={"a": 0.5}) for name in ("agent", "team")]
    federation = Federation(tiers, rule)
    agents = [("a", "agent")]
    assert copies(keyword(federation)) == agents
    assert copies(nearest(federation)) == agents
    assert copies(federation.recent(EVERYTHING, 1)) == agents
    assert copies(federation.entries()) == [*agents, *((entry.id, "agent") for entry in FILLER)]
    assert [key.split("\x1f") for key in federation.vectors(SPACE, EVERYTHING)[0]] == [["a", "agent"]]
    assert federation.count() == 10


def test_where_the_best_copy_stands_every_copy_counts_for_a_scope():
    # Otherwise a copy with an end would be searched as if nothing had one.
    tiers = [tier("agent", Entry("a", valid_until=1.0)), tier("team", Entry("a"))]
    assert not Federation(tiers, BEST).covers(Filters.of({"valid_until": {"none": [1.0]}}))


def test_tiers_of_equal_weight_are_merged_by_score_then_by_id():
    entries = herons(4)
    one = tier("agent", entries[1], entries[3], *FILLER, priority=0.5)
    two = tier("x", entries[0], entries[2], *FILLER)
    found = keyword(Federation([one, two]), depth=3)
    assert [hit.position for hit in found] == [1, 2, 3]
    assert found == sorted(found, key=lambda hit: (-hit.score, hit.id))


@tabled
def test_a_priority_decides_whose_copy_stands_and_else_the_order_given(names, priorities, stands):
    own = zip(names.split(), priorities, strict=True)
    federation = Federation([tier(name, Entry("a", text="heron"), *FILLER, priority=it) for name, it in own])
    assert copies(keyword(federation)) == [("a", stands)]
    other = next(name for name in names.split() if name != stands)
    asked = ["none", "a", copy_key("a", other), copy_key("a", "nowhere")]
    assert copies(federation.get(asked)) == [("a", stands), ("a", other)]  # a plain id means what stands


def test_a_tier_may_give_no_more_than_so_many_matches():
    rule = FederationRule(best_copy=True, per_tier=2)
    tiers = [tier("agent", *herons(4), *FILLER), tier("team", *herons(4, 4), *FILLER)]
    expected = [("h0", "agent"), ("h1", "agent"), ("h4", "team"), ("h5", "team")]
    for depth in (3, 9):
        assert sorted(copies(keyword(Federation(tiers, rule), depth=depth))) == expected[:depth]


def test_only_the_first_tiers_vectors_may_be_searched():
    rule = FederationRule(best_copy=True, first_vectors=True)
    agent = tier("agent", Entry("a"), Entry("b"), cosines={"a": 0.5, "b": 0.9})
    federation = Federation([tier("project", Entry("a"), cosines={"a": 0.6}), agent], rule)
    assert copies(nearest(federation)) == [("a", "project")]
    assert [key.split("\x1f") for key in federation.vectors(SPACE, EVERYTHING)[0]] == [["a", "project"]]
    # A copy of another tier is scored by the first tier's vector of the same id.
    agents = copy_key("a", "agent")
    found = federation.vectors_of(SPACE, [agents, copy_key("b", "agent")])
    assert {key: vector[0] for key, vector in found.items()} == {agents: pytest.approx(0.6)}


def test_late_filters_leave_gaps_where_all_tiers_are_merged():
    entries = [Entry(f"h{i}", project=f"p{i % 2}") for i in range(4)]
    agent = tier("agent", *entries[:2], cosines={"h0": 0.9, "h1": 0.8})
    tiers = [agent, tier("team", *entries[2:], cosines={"h2": 0.7, "h3": 0.6})]
    found = nearest(Federation(tiers), 3, Filters.of({"project": "p1"}), filter_first=False)
    assert [(hit.id[:2], hit.position) for hit in found] == [("h1", 2)]


def test_tiers_have_names_of_their_own():
    twice = [tier(name) for name in ("team", "agent", "team", "agent")]
    priorities = [[tier("agent", priority=own)] for own in (0.0, float("nan"), float("inf"))]
    wrong = [(twice, r"twice; tier 'team'"), ([tier("")], "tier has no"), ([], "least one vault")]
    for tiers, told in wrong + [(own, "0 and finite") for own in priorities]:
        with pytest.raises(ConfigError, match=told):
            Federation(tiers)


def test_every_change_of_a_tier_changes_the_revision():
    tiers = [tier("agent"), tier("team")]
    federation = Federation(tiers)
    seen = {federation.revision()}
    for each in tiers:
        each.store.upsert([Entry("a")])
        seen.add(federation.revision())
    assert len(seen) == 3
