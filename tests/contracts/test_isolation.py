"""What escapes a filter or a window, as recorded, and what does not; test_scopes.py searches random worlds."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.shared import vault_with
from worlds import KINDS, NOW, Directions, random_entry

from steelyard import Entry, Filters, Query, Searcher, find_system
from steelyard.embedders.embed import space_of
from steelyard.stores.federation import Federation, Tier

ESCAPES = [
    Entry("said", text="heron", domain="auth"),
    Entry("elsewhere", text="newt", domain="data"),
    Entry("expired", text="newt", domain="auth", valid_until=10.0),
    Entry("memory", text="newt", domain="auth", kind="memory"),
]


@pytest.mark.parametrize(("name", "also"), [("soleri", ()), ("soleri:shipped", ("elsewhere", "expired"))])
def test_the_shipped_profile_shows_what_the_documented_one_does_not(name, also):
    # systems/soleri.md, 0.7: vector-only candidates skip the filters on domain, type and severity, and expiry.
    system, embedder = find_system(name), Directions(np.random.default_rng(0))
    with vault_with(*ESCAPES) as vault:
        vectors = np.ones((len(ESCAPES), 3), dtype=np.float32)
        vault.put_vectors(space_of(embedder, "text", system.reading.recipe), [e.id for e in ESCAPES], vectors)
        query = Query("heron", filters=Filters.of({"domain": "auth"}), asked_at=NOW)
        found = Searcher(vault, system.config(10, "random"), embedder).search(query)
    assert {hit.entry.id for hit in found.hits} == {"said", *also}


def test_a_copy_without_an_end_does_not_keep_an_expired_one_alive():
    # The shipped rule takes the copy that matches best, whichever tier holds it.
    system = find_system("soleri:shipped")
    others, expired = [Entry(f"o{i}", title="newt") for i in range(9)], Entry("a", title="heron", valid_until=10.0)
    with vault_with(expired, *others) as agent, vault_with(Entry("a", text="heron"), *others) as team:
        store = Federation([Tier("agent", agent), Tier("team", team)], system.federation)
        found = Searcher(store, system.config()).search(Query("heron", asked_at=NOW))
    assert [(hit.entry.id, hit.entry.vault) for hit in found.hits] == [("a", "team")]


def test_every_kind_of_filter_admits_some_and_refuses_some():
    """Otherwise nothing would be proved; what a filter admits in SQL is what its predicate says."""
    rng = np.random.default_rng(0)
    entries = [replace(random_entry(rng, f"e{at}", 40), id=f"e{at}") for at in range(40)]
    with vault_with(*entries) as vault:
        for kind in KINDS:
            sizes = set()
            for _ in range(20):
                filters, holds = kind(rng)
                expected = {e.id for e in entries if holds(e, entries)}
                assert {e.id for e in vault.entries(filters)} == expected, str(filters)
                sizes.add(len(expected))
            assert any(0 < size < 40 for size in sizes), kind.__name__
