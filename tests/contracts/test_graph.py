"""A retriever that starts from others' lists: what it finds, what it may not, and where its edges come from."""

from dataclasses import replace

import pytest
from tests.unit.shared import tabled, vault_with

from steelyard import Entry, Filters, Query, Vault, find_system
from steelyard.base.errors import ConfigError
from steelyard.live.sources import identity
from steelyard.memory.entry import Relation
from steelyard.retrievers.graph import SEEDS, GraphRetriever
from steelyard.stores.base import Edge, ScoredId
from steelyard.stores.federation import Federation, Tier
from steelyard_eval.recording.provenance import agree


def entry(id_, *relations, **fields):
    return Entry(id_, relations=tuple(Relation(*relation) for relation in relations), **fields)


@pytest.fixture
def store():
    """a caused b, b supports c, c cites d; e is alone; f is of another project."""
    with Vault(":memory:") as vault:
        c = entry("c", ("cites", "d"), ("supersedes", "gone"), ("supersedes", "e", None, "proposed"))
        b = entry("b", ("supports", "c"), ("caused", "f", 1.0))
        vault.upsert([entry("a", ("caused", "b", 0.8)), b, c, Entry("d"), Entry("e"), Entry("f", project="other")])
        yield vault


def follow(store, *seeds, depth=None, filters=None, **options):
    own = {"seeds": 5, "hops": 2, "decay": 0.5, "least": 0.01, "fan": 5} | options
    lists = {"fts": [ScoredId(id_, 1.0 - at / 10, at + 1) for at, id_ in enumerate(seeds)]}
    found = GraphRetriever(store, **own).follow(Query("q", filters=Filters.of(filters or {})), depth, lists)
    assert [hit.position for hit in found] == list(range(1, len(found) + 1))
    assert found == sorted(found, key=lambda hit: (-hit.score, hit.id))
    return {hit.id: hit.score for hit in found}


@tabled
def test_activation_halves_with_each_relation_times_its_strength(store, seeds, options, expected):
    assert follow(store, *seeds, **options) == pytest.approx(expected)


def test_a_scope_bounds_what_is_passed_through(store):
    store.upsert([entry("b", ("supports", "c"), project="other")])
    assert follow(store, "a", filters={"project": {"none": ["other"]}}) == {}


def test_the_edge_index_follows_the_entries(store):
    assert store.edges(["d"]) == [Edge("c", "d", "cites", None)]
    store.upsert([entry("c", ("related", "a", 0.7))])
    assert store.edges(["d"]) == []
    assert Edge("c", "a", "related", 0.7) in store.edges(["c"])
    store.delete(["c"])
    assert store.edges(["c"]) == [Edge("b", "c", "supports", None)]


def test_a_federation_has_the_edges_of_every_tier():
    with vault_with(entry("a", ("caused", "b", 1.0))) as one, vault_with(entry("b")) as two:
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
    config = find_system("spec_kit").config(10)
    shallow = {name: replace(own, depth=2) for name, own in config.retrievers.items()}
    with pytest.raises(ConfigError, match="first 5 places"):
        replace(config, retrievers=shallow).before("graph")
    assert SEEDS.checked(1) == 1  # or but one place
