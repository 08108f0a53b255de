"""A caller sees the union of his scopes and nothing else, whatever he asks for and by whichever way.

Every system under every sort of strategy and depth, in the random worlds of `worlds.py`: search, context, list
and get. STEELYARD_ISOLATION_CHECKS says how many checks each property makes of each system (1000000 takes
hours), and the number that were done is printed.
"""

import json
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from worlds import CHECKS, NOW, SEARCHES, VECTORS_ESCAPE, World, one, random_entry, returned, scope, seen_by, some

from steelyard import Query, Searcher, Vault, find_system, parse_strategy
from steelyard.base.errors import DataError
from steelyard.retrievers import EMBEDDING
from steelyard.stores.base import plain
from steelyard.systems import SYSTEMS
from steelyard_eval.vaults.read import list_entries, read_entries

DATA = json.loads(Path(__file__).with_name("strategies.json").read_text("utf-8"))
QUERIES = DATA["queries of scopes"]
EXCLUDED = {"heron -newt": {"newt"}, "-marsh": {"marsh"}, "-pond -reed": {"pond", "reed"}}
"""What a query excludes, for the system that knows exclusion."""


class CallersWorld(World):
    """A world as one caller sees it, searched by a random strategy down to random depths."""

    def __init__(self, system, seed):
        super().__init__(system, seed)
        self.visible, self.sees = seen_by(self.rng)
        config = self.searcher.config
        config = config.with_strategy(self.strategy())
        least = 5 if "graph" in config.retrievers else 1  # graph starts from the first five places of the others
        deep = {
            name: replace(own, depth=own.depth and int(self.rng.integers(least, 15)))
            for name, own in config.retrievers.items()
        }
        config = replace(config, retrievers=deep)
        store = self.searcher.store
        self.searcher = Searcher(store, config, self.embedder, clock=lambda: NOW, visible=self.visible)

    def copy(self, entry):
        """The entry as it was written, and what the caller sees around it: the rest supersedes nothing for him."""
        written, around = super().copy(entry)
        return written, [e for e in around if self.sees(e, around)]

    def strategy(self):
        finders = [name for name in self.system.searching.retrievers if name != "memory"]
        names = {"first": one(self.rng, *finders), "all": ", ".join(finders)}
        others = [parse_strategy(form.format(**names)) for form in DATA["forms of scopes"]]
        return one(self.rng, self.system.searching.strategy, *others)

    def admits(self, entry, around, holds):
        """Whether a search may show the entry: what was asked, and the window where the system heeds it."""
        opened = entry.valid_from is None or entry.valid_from <= NOW
        ends = entry.valid_until is not None and entry.valid_until <= NOW
        return holds(entry, around) and (not self.system.reading.valid_only or (opened and not ends))


def property_of(name, check, capsys):
    """Runs a check of (world) until CHECKS are done, and prints how many were."""
    system, counts = find_system(name), Counter()

    @settings(max_examples=max(1, CHECKS // SEARCHES))
    @given(seed=st.integers(0, 2**63))
    def worlds(seed):
        world = CallersWorld(system, seed)
        for _ in range(SEARCHES):
            check(world, counts)
            counts["checks"] += 1
        world.close()

    worlds()
    with capsys.disabled():
        print(f" {name}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}", end="")
    assert counts["shown"] > CHECKS / 10
    return counts


def test_who_sees_nothing_finds_nothing_and_is_not_told_that_vectors_are_missing():
    for seed in (17, 54, 109):  # tiers whose first has no abstracts, one vault, tiers with all layers
        world = CallersWorld(find_system("cortex_mem:documented"), seed)
        assert world.searcher.store.count() == 0
        assert world.searcher.search("how do we rotate keys").hits == ()


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_no_search_shows_what_the_caller_may_not_see(name, capsys):
    """Nor what a filter, the system's own corpus or a validity window leaves out."""
    escape = VECTORS_ESCAPE.get(name, ())

    def check(world, counts):
        filters, holds = scope(world.rng)
        text, retrievers = one(world.rng, *QUERIES), world.searcher.config.retrievers
        without = world.searcher.config.without(EMBEDDING) is not None and world.rng.random() < 0.2
        how = "never" if without else "always"
        result = world.searcher.search(Query(text, filters=filters, asked_at=NOW), semantic=how)
        found = list(returned(result, world.searcher.store))
        for entry, finder in found:
            written, around = world.copy(entry)
            assert world.sees(written, around), "foreign"
            aside = "memory" in retrievers and written.kind == "memory"
            allowed = aside == (finder == "memory") and world.admits(written, around, holds)
            assert allowed or finder in escape
            counts["escaped"] += not allowed
        assert {hit.entry.id for hit in result.hits} <= {plain(entry).id for entry, _ in found}
        for hit in result.hits:
            written, around = world.copy(hit.entry)
            assert world.sees(written, around), "foreign"
            if world.system.name == "moltnet" and text in EXCLUDED:
                counts["shown under an exclusion"] += 1
                assert EXCLUDED[text].isdisjoint(f"{written.title} {written.text}".split())
            counts["shown"] += 1

    counts = property_of(name, check, capsys)
    assert counts["shown under an exclusion"] > CHECKS / 10 or not name.startswith("moltnet")
    assert (counts["escaped"] > 0) == bool(escape)


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_no_context_shows_what_the_caller_may_not_see(name, capsys):
    def check(world, counts):
        filters, holds = scope(world.rng)
        hits, total = world.searcher.context(one(world.rng, "", *QUERIES), filters, topup_recent=True)
        for hit in hits:
            written, around = world.copy(hit.entry)
            assert world.sees(written, around), "foreign"
            found_by_vectors = name in VECTORS_ESCAPE and hit.score is not None
            assert found_by_vectors or world.admits(written, around, holds)
            counts["shown"] += 1
        if world.alone:
            [(_, held)] = world.tiers.values()
            around = [e for e in held.values() if world.sees(e, held)]
            inside = [e for e in around if world.sees(e, around) and world.admits(e, around, holds)]
            memories = "memory" in world.system.searching.retrievers
            assert total == len([e for e in inside if not memories or e.kind != "memory"])

    property_of(name, check, capsys)


def caller(rng):
    """Scopes as the command line has them, and what they let a caller see."""
    vaults, tenants = some(rng, ("v1", "v2")), some(rng, ("t1", "t2"))
    texts = [f"vault={value}" for value in vaults] + [f"tenant={value}" for value in tenants]
    return texts or ["vault=none"], lambda entry: entry.vault in vaults or entry.tenant in tenants


def test_list_and_get_show_all_that_the_caller_may_see_and_nothing_else(capsys):
    counts = Counter()

    @settings(max_examples=max(1, CHECKS // SEARCHES))
    @given(seed=st.integers(0, 2**63))
    def worlds(seed):
        rng = np.random.default_rng(seed)
        entries = [random_entry(rng, f"e{at}", 12) for at in range(12)]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "vault.db")
            with Vault(path, create=True) as vault:
                vault.upsert(entries)
            for _ in range(SEARCHES):
                scopes, sees = caller(rng)
                check_list(rng, path, entries, scopes, sees)
                counts["refused"] += check_get(rng, path, entries, scopes, sees)
                counts["checks"] += 1

    worlds()
    with capsys.disabled():
        print(f" {counts['checks']} checks, {counts['refused']} ids refused", end="")
    assert counts["refused"] > CHECKS / 10


def check_list(rng, path, entries, scopes, sees):
    """All of them, newest first, undated ones last, ties by id."""
    filters, holds = scope(rng)
    seen = [e for e in entries if sees(e)]
    inside = [e for e in seen if holds(e, seen)]
    expected = sorted(inside, key=lambda e: (e.created_at is None, -(e.created_at or 0.0), e.id))
    listed, total = list_entries(path, filters, None, scopes)
    assert [e.id for e in listed] == [e.id for e in expected]
    assert total == len(expected)


def check_get(rng, path, entries, scopes, sees):
    """An id outside the scope gets the answer of one that does not exist; how many ids were refused."""
    asked = [entries[at] for at in rng.choice(12, size=3, replace=False)]
    hidden = sorted(e.id for e in asked if not sees(e))
    seen = [e.id for e in asked if sees(e)]
    assert [record["id"] for record in read_entries(path, seen, scopes)] == seen
    if hidden:
        with pytest.raises(DataError) as refused:
            read_entries(path, [e.id for e in asked], scopes)
        assert [part.split("'")[1] for part in str(refused.value).split("no entry ")[1:]] == hidden
        suggested = {part.split("'")[3] for part in str(refused.value).split("no entry ")[1:] if "mean" in part}
        assert suggested <= {e.id for e in entries if sees(e)}
    return len(hidden)
