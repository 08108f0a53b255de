"""What a search gives back and how each score is explained; reviews of entries; tiers of different models."""

from dataclasses import replace

import numpy as np
import pytest
from shared import beside, document, done, tabled, vault_with, write_set

from steelyard import Entry, Query, RecordedEmbedder, Searcher, Vault, find_system, parse_strategy
from steelyard.base.errors import ConfigError, DataError, VaultError
from steelyard.memory.entry import DAY
from steelyard.results import hits_of
from steelyard.retrievers.keywords import BM25, Bm25Retriever
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.signals.reviews import review
from steelyard.stores.base import Space
from steelyard.stores.federation import Federation, Tier
from steelyard_eval.vaults import reindex_vault, vault_embedder
from steelyard_eval.vaults.read import RankedBy, open_searcher

ENTRIES = (
    Entry("a", title="red apple", text="an apple a day"),
    Entry("b", title="green pear", text="no fruit of this name"),
    Entry("c", title="apple tree", text="in the garden"),
)


@pytest.fixture
def vault():
    with vault_with(*ENTRIES) as vault:
        vault.searcher = Searcher(vault, find_system("bm25").config(10, ""), None)
        yield vault


def test_hits_are_in_order_and_hold_what_the_strategy_read(vault):
    found = vault.searcher.search("apple")
    first, second = found.hits
    assert (first.rank, second.rank, {first.entry.id, second.entry.id}) == (1, 2, {"a", "c"})
    assert first.score >= second.score
    for hit in found.hits:  # a strategy of one signal: the score is that signal
        assert hit.signals == {"bm25": pytest.approx(hit.score)}
    assert (found.embedding_calls, found.degraded) == (0, False)
    vault.delete(["c"])
    with pytest.raises(VaultError, match="'c' was deleted"):  # it is gone by now
        hits_of(vault, found.table, found.ranking, found.strategy, found.fused)


def test_the_clock_may_stand_at_the_epoch(vault):
    vault.upsert([Entry("a", text="an apple", updated_at=0.0)])
    strategy = parse_strategy("weighted_sum(1*bm25, 1*recency(half_life=1h))")
    searcher = Searcher(vault, find_system("bm25").config(10, "").with_strategy(strategy), None)
    shown = {hit.entry.id: hit.signals for hit in searcher.search(Query("apple", asked_at=0.0)).hits}
    assert shown["a"]["recency"] == 1.0


def test_who_ranks_whatever_is_found_asks_vectors_too_unless_told_not_to():
    with vault_with(*ENTRIES) as vault:
        vault.put_vectors(Space("m", "text", "{title}"), ["b"], np.ones((1, 2), np.float32))
        config = find_system("plain").config(10, "m").with_strategy(parse_strategy("importance"))
        searcher = Searcher(vault, config, RecordedEmbedder("m", "{title}", {"garden": np.ones(2)}))
        found = [searcher.candidates(Query("garden"), config.strategy, *more).entries for more in ((), (False,))]
    assert found == [("b", "c"), ("c",)]


def test_a_recording_has_no_more_of_a_list_than_asked_and_the_deepest_is_kept(vault):
    """Two entries have the word."""
    query = Query("apple", asked_at=0.0)
    assert [len(vault.searcher.part([query], ["bm25"], depth).entry) for depth in (1, 2, None)] == [1, 2, 2]
    depths = (0, 1, 2, 1, 0)
    lengths = [len(vault.searcher.record([query], ["bm25"], depth, "", keep=True)) for depth in depths]
    [kept] = (held.value for held in vault.cache._held["lists"].values())
    assert (lengths, len(kept)) == ([0, 1, 2, 1, 0], 1)


@pytest.mark.parametrize("settings", [{"k1": -1.0}, {"b": 1.5}, {"mean_length": float("nan")}])
def test_bm25_refuses_what_its_formula_cannot_take(settings):
    with pytest.raises(ConfigError, match=f"^{next(iter(settings))} is"):
        BM25.values(RetrieverConfig(parameters=settings))
    with pytest.raises(ConfigError, match=f"^{next(iter(settings))} is"):
        Bm25Retriever(None, **settings)


NOW = 1_767_225_600.0


def stored(**facts):
    return vault_with(Entry("a", text="x", **facts))


def test_a_review_writes_stability_difficulty_time_and_count():
    """S = 9, t = 9 days: R = 0.9. Good: 9 * (1 + (11 - 6) / 10) * 1 * (1 + 0.1 / 2) = 14.175."""
    vault = stored(stability=9.0, difficulty=6.0, last_review=NOW - 9 * DAY, review_count=2.0)
    review(vault, "a", "good", NOW)
    (entry,) = vault.get(["a"])
    assert (entry.stability, entry.difficulty) == (pytest.approx(14.175), 6.0)
    assert (entry.last_review, entry.review_count) == (NOW, 3.0)


@tabled
def test_a_first_review_starts_from_a_day_and_a_difficulty_of_5(grade, stability, difficulty):
    """At once: R = 1; 1 * (1 + 0.6) by the ease of the grade, and a fifth for `again`."""
    entry = review(stored(), "a", grade, NOW)
    assert (entry.stability, entry.difficulty) == (pytest.approx(stability), difficulty)


def test_many_reviews_stay_a_number():
    vault = stored(created_at=NOW)
    for day in range(200):
        entry = review(vault, "a", "easy", NOW + day * DAY)
    assert entry.stability == 36_500.0


def test_what_cannot_be_reviewed_is_refused():
    with pytest.raises(DataError, match="no entry 'b'"):
        review(stored(), "b", "good", NOW)
    with pytest.raises(ConfigError, match="grade 'god'; did"):
        review(stored(), "a", "god", NOW)


@pytest.fixture
def logged(tmp_path):
    rows = [{"id": name, "text": f"{name} keys", "created_at": "2020-01-01"} for name in ("one", "two", "three")]
    write_set(tmp_path / "set", rows, ["keys"], "q1 0 one 1\n")
    done("index", tmp_path / "set", tmp_path / "v.db")
    shown = document("search", tmp_path / "v.db", "keys", "--log", tmp_path / "log.jsonl")
    return tmp_path, shown["query_id"]


def reviewed(folder, query_id, code=0):
    words = ("vault", "act", folder / "log.jsonl", query_id, "one", "--action", "reviewed")
    return done(*words, "--vault", folder / "v.db", code=code)


def signal(folder):
    asked = "weighted_sum(1*fts, 1*retrievability)"
    with open_searcher([str(folder / "v.db")], RankedBy("plain", asked), 5) as searcher:
        return {hit.entry.id: hit.signals["retrievability"] for hit in searcher.search("keys").hits}


def test_a_review_by_command_makes_the_signal_live_and_survives_indexing(logged):
    folder, query_id = logged
    before = signal(folder)
    reviewed(folder, query_id)
    after = signal(folder)
    assert before["one"] == before["two"] < 0.1  # years after a day's stability
    assert after["one"] == pytest.approx(1.0, abs=1e-3)
    assert after["two"] == pytest.approx(before["two"], abs=1e-3)
    assert '"reviewed"' in (folder / "log.jsonl").read_text()
    done("index", folder / "set", folder / "v.db")
    assert signal(folder)["one"] == pytest.approx(1.0, abs=1e-3)


def test_a_review_that_cannot_be_logged_is_not_written(logged):
    folder, _ = logged
    before = (folder / "log.jsonl").read_text()
    assert "no impression" in reviewed(folder, "nobody", code=2).stderr
    assert signal(folder)["one"] < 0.1
    assert (folder / "log.jsonl").read_text() == before


TABLES = beside(__file__)
BIRDS, TOOLS = TABLES["BIRDS"], TABLES["TOOLS"]


def make(path, texts, prefix, embedder="lsa"):
    entries = (Entry(f"{prefix}{at}", title=text, text=text) for at, text in enumerate(texts))
    vault_with(*entries, path=path).close()
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
    assert find_system("vector").reading.recipe == "{title}\n{text}"
    assert {hit.entry.vault for hit in result.hits} == {"agent", "project"}
    for hit in result.hits:
        own = vault_embedder(vaults[["agent", "project"].index(hit.entry.vault)])
        asked, words = own.embed(["heron at night", f"{hit.entry.title}\n{hit.entry.text}"]).astype(float)
        assert hit.score == pytest.approx(asked @ words, abs=1e-6)
    assert (result.embedding_calls, result.notes) == (2, ())


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
    result = searcher([Vault(path) for path in paths], "soleri:shipped").search("heron")
    ids = [hit.entry.id for hit in result.hits]
    assert len(ids) == len(set(ids))
    assert {("e0", "project"), ("e0", "agent")} & {tuple(key.split("\x1f")) for key in result.table.entries} == {
        ("e0", "project")
    }
    assert result.embedding_calls == 1


def test_words_that_only_a_tag_says_have_vectors(tmp_path):
    """MoltNet embeds the tags, so its model has to know their words."""
    tagged = [Entry(f"e{i}", title=t, text=t, tags=("zebrafish",) if i < 2 else ()) for i, t in enumerate(BIRDS)]
    vault_with(*tagged, path=tmp_path / "v.db").close()
    reindex_vault(str(tmp_path / "v.db"), "lsa")
    strategy = find_system("vector").searching.strategy
    config = replace(find_system("moltnet").config(10, "lsa"), finish=()).with_strategy(strategy)
    with Vault(tmp_path / "v.db") as vault:
        hits = Searcher(vault, config, vault_embedder(vault)).search("zebrafish").hits
        assert Searcher(vault, config, vault_embedder(vault)).search("zebrafish").notes == ()
        vault.upsert([Entry("late", text="zebrafish")])  # as after an index that was broken off
        (told,) = Searcher(vault, config, vault_embedder(vault)).search("zebrafish").notes
    assert {hit.entry.id for hit in hits[:2]} == {"e0", "e1"}
    assert hits[1].score > 0.1 > hits[2].score
    assert told.startswith(f"1 of {len(BIRDS) + 1} entries")


def test_a_tier_without_vectors_is_found_by_keywords_and_the_result_says_so(tiers, tmp_path):
    bare = make(tmp_path / "team.db", TOOLS, "t", "none")
    found = searcher([Vault(tiers[0]), Vault(bare)]).search("heron")
    (told,) = found.notes
    assert told.startswith("the tier 'project' has no vectors") and "keywords alone" in told
    assert "t0" in [hit.entry.id for hit in found.hits]
    assert searcher([Vault(path) for path in tiers]).search("heron").notes == ()
