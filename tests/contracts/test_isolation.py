"""No system shows what its scope leaves out: filters, the system's own corpus, validity windows.

Every system is checked by its name in the random worlds of `worlds.py`. A check is one search, of which all
candidates and hits are looked at; STEELYARD_ISOLATION_CHECKS says how many each system gets (1000000 takes
hours), and the number that were done is printed.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import CHECKS, KINDS, NOW, SEARCHES, VECTORS_ESCAPE, Directions, World, random_entry, returned

from steelyard.embedders.embed import space_of
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query
from steelyard.retrievers import EMBEDDING
from steelyard.stores.federation import Federation, Tier, plain
from steelyard.stores.sqlite import Vault
from steelyard.systems import SYSTEMS, find_system


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_nothing_escapes_a_filter_a_scope_or_an_expiry(name, capsys):
    system = find_system(name)
    counts = Counter()

    @settings(max_examples=max(1, CHECKS // SEARCHES))
    @given(seed=st.integers(0, 2**63))
    def search_worlds(seed):
        world = World(system, seed)
        for _ in range(SEARCHES):
            result, may_show = world.search()
            counts["checks"] += 1
            shown = {hit.entry.id for hit in result.hits}
            found = list(returned(result, world.searcher.store))
            assert shown <= {plain(entry).id for entry, _ in found}
            by_words = {entry.id for entry, finder in found if finder not in EMBEDDING}
            for entry, finder in found:
                alone = finder in EMBEDDING and entry.id not in by_words
                counts["by vectors alone"] += alone
                if finder in VECTORS_ESCAPE.get(name, ()):
                    counts["escaped"] += not may_show(entry, finder)
                else:
                    assert may_show(entry, finder)
        world.close()

    search_worlds()
    with capsys.disabled():
        print(
            f" {name}: {counts['checks']} checks, {counts['by vectors alone']} candidates by vectors alone", end=""
        )
    assert counts["by vectors alone"] > CHECKS / 10 or not EMBEDDING & {*system.searching.retrievers}
    assert (counts["escaped"] > 0) == (name in VECTORS_ESCAPE)


ESCAPES = [
    Entry("said", text="heron", domain="auth"),
    Entry("elsewhere", text="newt", domain="data"),
    Entry("expired", text="newt", domain="auth", valid_until=10.0),
    Entry("memory", text="newt", domain="auth", kind="memory"),
]


@pytest.mark.parametrize(
    ("name", "expected"), [("soleri", {"said"}), ("soleri:shipped", {"said", "elsewhere", "expired"})]
)
def test_the_shipped_profile_shows_what_the_documented_one_does_not(name, expected):
    # systems/soleri.md, 0.7: vector-only candidates skip the filters on domain, type and severity, and expiry.
    system, embedder = find_system(name), Directions(np.random.default_rng(0))
    with Vault(":memory:") as vault:
        vault.upsert(ESCAPES)
        vectors = np.ones((len(ESCAPES), 3), dtype=np.float32)
        vault.put_vectors(space_of(embedder, "text", system.reading.recipe), [e.id for e in ESCAPES], vectors)
        query = Query("heron", filters=Filters.of({"domain": "auth"}), asked_at=NOW)
        found = Searcher(vault, system.config(10, "random"), embedder).search(query)
    assert {hit.entry.id for hit in found.hits} == expected


def test_a_copy_without_an_end_does_not_keep_an_expired_one_alive():
    # The shipped rule takes the copy that matches best, whichever tier holds it.
    system = find_system("soleri:shipped")
    with Vault(":memory:") as agent, Vault(":memory:") as team:
        agent.upsert(
            [Entry("a", title="heron", valid_until=10.0), *(Entry(f"o{i}", title="newt") for i in range(9))]
        )
        team.upsert([Entry("a", text="heron"), *(Entry(f"o{i}", title="newt") for i in range(9))])
        store = Federation([Tier("agent", agent), Tier("team", team)], system.federation)
        found = Searcher(store, system.config()).search(Query("heron", asked_at=NOW))
    assert [(hit.entry.id, hit.entry.vault) for hit in found.hits] == [("a", "team")]


def test_every_kind_of_filter_admits_some_and_refuses_some():
    """Otherwise nothing would be proved; what a filter admits in SQL is what its predicate says."""
    rng = np.random.default_rng(0)
    entries = [replace(random_entry(rng, f"e{at}", 40), id=f"e{at}") for at in range(40)]
    with Vault(":memory:") as vault:
        vault.upsert(entries)
        for kind in KINDS:
            sizes = set()
            for _ in range(20):
                filters, holds = kind(rng)
                expected = {e.id for e in entries if holds(e, entries)}
                assert {e.id for e in vault.entries(filters)} == expected, str(filters)
                sizes.add(len(expected))
            assert any(0 < size < 40 for size in sizes), kind.__name__
