"""Tiers whose vectors are of different fits or models: each is searched by its own, or says that it is not."""

import re
from dataclasses import replace

import pytest

from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.vaults import reindex_vault, vault_embedder

BIRDS = ["heron stands in the reed", "heron fishes at dawn", "reed and marsh in rain", "newt sleeps in the pond"]
TOOLS = [
    "heron deploys the cluster",
    "cluster restarts at night",
    "night build of the cluster",
    "token rotates daily",
]


def make(path, texts, prefix, embedder="lsa"):
    with Vault(path, create=True) as vault:
        vault.upsert(Entry(f"{prefix}{at}", title=text, text=text) for at, text in enumerate(texts))
    reindex_vault(str(path), embedder)
    return str(path)


@pytest.fixture
def tiers(tmp_path):
    return [make(tmp_path / "agent.db", BIRDS, "b"), make(tmp_path / "project.db", TOOLS, "t")]


def searcher(vaults, name="soleri", model="lsa"):
    system = find_system(name)
    store = Federation([Tier(n, v) for n, v in zip(("agent", "project"), vaults, strict=True)], system.federation)
    return Searcher(store, system.config(10, model), [e for v in vaults if (e := vault_embedder(v)) is not None])


def test_each_tier_is_compared_by_its_own_fit(tiers):
    vaults = [Vault(path) for path in tiers]
    result = searcher(vaults, "vector").search("heron at night")

    recipe = find_system("vector").reading.recipe
    assert recipe == "{title}\n{text}"
    assert {hit.entry.vault for hit in result.hits} == {"agent", "project"}
    for hit in result.hits:
        own = vault_embedder(vaults[["agent", "project"].index(hit.entry.vault)])
        asked, words = own.embed(["heron at night", f"{hit.entry.title}\n{hit.entry.text}"]).astype(float)
        assert hit.score == pytest.approx(asked @ words, abs=1e-6)
    assert result.embedding_calls == 2
    assert result.notes == ()


@pytest.mark.parametrize("filters", ["before_cut", "after_cut"])
def test_lists_of_several_fits_are_cut_once(tiers, filters):
    """Two tiers with two models give the list that one list of all their scores gives."""
    vaults = [Vault(path) for path in tiers]
    whole = searcher(vaults, "vector").search("heron at night").hits
    one = searcher(vaults, "vector")
    config = one.config
    short = replace(config.retrievers["vector"], depth=3, filters=filters)
    asked = Searcher(one.store, replace(config, retrievers={"vector": short}), one._sources.embedders)

    assert [hit.entry.id for hit in asked.search("heron at night").hits] == [hit.entry.id for hit in whole[:3]]


def test_the_shipped_profile_returns_an_entry_once_though_its_copies_differ(tmp_path):
    """Keywords find the team's copy, which matches better; vectors are those of the first tier, so its copy."""
    long = ["heron " + "and much else beside it " * 9, *BIRDS[1:]]
    paths = [make(tmp_path / "agent.db", long, "e"), make(tmp_path / "project.db", ["heron", *TOOLS[1:]], "e")]
    vaults = [Vault(path) for path in paths]
    result = searcher(vaults, "soleri:shipped").search("heron")

    ids = [hit.entry.id for hit in result.hits]
    assert len(ids) == len(set(ids))
    copies = [re.split("\x1f", key) for key in result.table.entries]
    assert ["e0", "project"] in copies and ["e0", "agent"] not in copies
    assert result.embedding_calls == 1


def test_words_that_only_a_tag_says_have_vectors(tmp_path):
    """MoltNet embeds the tags, so its model has to know their words."""
    with Vault(tmp_path / "v.db", create=True) as vault:
        vault.upsert(
            Entry(f"e{at}", title=t, text=t, tags=("zebrafish",) if at < 2 else ()) for at, t in enumerate(BIRDS)
        )
    reindex_vault(str(tmp_path / "v.db"), "lsa")
    with Vault(tmp_path / "v.db") as vault:
        embedder = vault_embedder(vault)
        system = find_system("moltnet")
        config = replace(system.config(10, "lsa"), finish=()).with_strategy(
            find_system("vector").searching.strategy
        )
        hits = Searcher(vault, config, embedder).search("zebrafish").hits

    assert {hit.entry.id for hit in hits[:2]} == {"e0", "e1"}
    assert hits[1].score > 0.1 > hits[2].score
