"""What Soleri's code does and its document does not say: hashes of contents, filters on a merged list."""

from dataclasses import replace

from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query
from steelyard.stores.federation import Federation, FederationRule, Tier, plain_id
from steelyard.stores.sqlite import Vault
from steelyard.systems.soleri import DOCUMENTED, SHIPPED

# Recorded values are compared in tests/parity; here, what counts and what does not.


def vault(*entries):
    store = Vault(":memory:")
    store.upsert(entries)
    return store


def found(system, rule, query):
    """Ids and places of what keywords find in two tiers."""
    # BM25 prefers the shorter text, so b leads the agent's list.
    agent = vault(
        Entry("a", text="token of some more words than that", domain="auth"),
        Entry("b", text="token", domain="web"),
        Entry("old", text="token", domain="auth", valid_until=5.0),
    )
    project = vault(Entry("c", text="token", domain="auth"))
    store = Federation([Tier("agent", agent), Tier("project", project)], rule)
    table = Searcher(store, system.config(), clock=lambda: 7.0).candidates(query, parse_strategy("fts"))
    places = table.positions["fts"].tolist()
    return {plain_id(table.entries[row]): place for row, place in zip(table.entry, places, strict=True)}


AUTH = Query("token", filters=Filters.of({"domain": "auth"}), asked_at=7.0)


def test_shipped_filters_act_on_the_merged_list_and_leave_gaps():
    rule = replace(SHIPPED.federation, per_tier=2)
    everything = found(SHIPPED, rule, replace(AUTH, filters=Filters()))
    assert sorted(everything) == ["a", "b", "c"]  # the entry whose time is over never takes a place
    assert found(SHIPPED, rule, AUTH) == {id_: place for id_, place in everything.items() if id_ != "b"}
    # With one match a tier, b takes the agent's only place before the filter drops it.
    assert sorted(found(SHIPPED, replace(rule, per_tier=1), AUTH)) == ["c"]


def test_documented_filters_act_in_every_tier():
    assert found(DOCUMENTED, FederationRule(per_tier=1), AUTH).keys() == {"a", "c"}
