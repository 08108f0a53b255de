"""A retriever that starts from others' lists: what it finds, what it may not, and where its edges come from."""

import pytest

from steelyard.base.errors import ConfigError
from steelyard.live.sources import identity
from steelyard.memory.entry import Entry, Relation
from steelyard.memory.query import Filters, Query
from steelyard.retrievers.graph import OTHER, GraphRetriever
from steelyard.stores.base import Edge, Found
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.recording.provenance import agree


def entry(id_, *relations, **fields):
    return Entry(id_, relations=tuple(Relation(*relation) for relation in relations), **fields)


@pytest.fixture
def store():
    """a caused b, b supports c, c cites d; e is alone; f is of another project."""
    with Vault(":memory:") as vault:
        vault.upsert(
            [
                entry("a", ("caused", "b", 0.8)),
                entry("b", ("supports", "c"), ("caused", "f", 1.0)),
                entry("c", ("cites", "d"), ("supersedes", "gone"), ("supersedes", "e", None, "proposed")),
                entry("d"),
                entry("e"),
                entry("f", project="other"),
            ]
        )
        yield vault


def follow(store, *seeds, depth=None, filters=None, **options):
    own = {"seeds": 5, "hops": 2, "decay": 0.5, "least": 0.01, "fan": 5} | options
    lists = {"fts": [Found(id_, 1.0 - at / 10, at + 1) for at, id_ in enumerate(seeds)]}
    found = GraphRetriever(store, **own).follow(Query("q", filters=filters or Filters()), depth, lists)
    assert [hit.position for hit in found] == list(range(1, len(found) + 1))
    assert found == sorted(found, key=lambda hit: (-hit.score, hit.id))
    return {hit.id: hit.score for hit in found}


def test_activation_halves_with_each_relation_times_its_strength(store):
    """caused 1.0 * 0.8, supports 0.5, caused 1.0; d is three relations away."""
    assert follow(store, "a") == pytest.approx({"b": 0.4, "f": 0.2, "c": 0.1})


def test_relations_lead_both_ways_and_unknown_types_have_a_strength(store):
    assert follow(store, "d", hops=1) == {"c": 0.5 * OTHER}


def test_what_is_only_proposed_is_no_edge_and_a_missing_target_is_not_found(store):
    assert set(follow(store, "c", hops=1)) == {"b", "d"}
    assert follow(store, "e") == {}


def test_a_seed_is_found_where_another_leads_to_it(store):
    assert follow(store, "a", "b", hops=1)["b"] == 0.4
    assert set(follow(store, "a", "b", hops=1, again=0)) == {"c", "f"}


def test_only_the_first_places_are_seeds(store):
    assert follow(store, "e", "a", seeds=1) == {}


def test_a_scope_bounds_what_is_found_and_passed_through(store):
    inside = Filters.of({"project": {"none": ["other"]}})
    assert set(follow(store, "a", filters=inside)) == {"b", "c"}
    store.upsert([entry("b", ("supports", "c"), project="other")])
    assert follow(store, "a", filters=inside) == {}


def test_a_smaller_depth_is_a_prefix(store):
    whole = follow(store, "a")
    assert follow(store, "a", depth=2) == dict(list(whole.items())[:2])


def test_the_edge_index_follows_the_entries(store):
    assert store.edges(["d"]) == [Edge("c", "d", "cites", None)]
    store.upsert([entry("c", ("related", "a", 0.7))])
    assert store.edges(["d"]) == []
    assert Edge("c", "a", "related", 0.7) in store.edges(["c"])
    store.delete(["c"])
    assert store.edges(["c"]) == [Edge("b", "c", "supports", None)]


def test_a_federation_has_the_edges_of_every_tier():
    with Vault(":memory:") as one, Vault(":memory:") as two:
        one.upsert([entry("a", ("caused", "b", 1.0))])
        two.upsert([entry("b")])
        both = Federation([Tier("agent", one), Tier("team", two)])
        (key,) = both.within(["a\x1fagent"], Filters())
        assert list(follow(both, key)) == ["b\x1fteam"]


def test_starting_points_are_part_of_a_recording():
    config = find_system("spec_kit").config(10)
    fingerprint = identity(config)
    assert fingerprint["after"] == {"graph": ["vector", "bm25"]}
    agree(config, fingerprint)
    with pytest.raises(ConfigError, match=r"retrievers\.graph\.seeds"):
        agree(config, fingerprint | {"graph": {**fingerprint["graph"], "seeds": 3}})


def test_a_list_must_be_as_deep_as_the_search_reads_it():
    from dataclasses import replace

    config = find_system("spec_kit").config(10)
    shallow = {name: replace(own, depth=2) for name, own in config.retrievers.items()}
    with pytest.raises(ConfigError, match="first 5 places"):
        replace(config, retrievers=shallow).before("graph")
