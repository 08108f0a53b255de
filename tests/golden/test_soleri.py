"""Soleri's document, statement by statement; docs/soleri.md lists which test holds which.

Expected values come from the document's own figures and examples, from SQLite, or are worked out by hand
beside the test. Vectors are placed by their cosine with the query, which is always the vector (1, 0).
How weights follow feedback is in tests/unit/config/test_config.py.
"""

import dataclasses
import json
import math
import re
from dataclasses import replace

import apsw
import numpy as np
import pytest
from tables import DOCS, SOLERI as TABLE, Spy, differing, ids, named, noted, statements
from tests.unit.shared import document, done

from steelyard import Entry, Filters, Query, Searcher, Vault, parse_strategy
from steelyard.embedders.embed import embed_missing
from steelyard.stores.base import plain
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import keywords
from steelyard.systems.soleri import DOCUMENTED, SHIPPED, STOP_WORDS, soleri_or, soleri_tokens

DAY = 86_400.0
YEAR, NOW = 365 * DAY, TABLE.now
PRIORS = ("severity", "recency", "tags", "domain")
TIERS = ("agent", "project", "team", "archive")

OTHERS = [Entry(f"other{i}", **TABLE.other) for i in range(12)]
"""A word in more than half of the entries weighs next to nothing; these keep the words rare."""
bench = TABLE.bench
vault_of, place, space = bench.vault, bench.place, bench.of


def searcher(store, embedder=None):
    config = DOCUMENTED.config(None, embedder.model if embedder else "")
    return Searcher(store, config, embedder, clock=lambda: NOW)


def search(store, query, embedder=None, **asked):
    return searcher(store, embedder).search(Query(query, **asked)).hits


def signal(hits, name):
    return {hit.entry.id: hit.signals[name] for hit in hits}


def test_the_index_covers_the_documented_columns_with_porter_over_unicode61(tmp_path):
    with vault_of(path=tmp_path / "vault.db") as vault:
        search(vault, "anything")
    db = apsw.Connection(str(tmp_path / "vault.db"))
    ((sql,),) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'fts_soleri'").fetchall()
    columns = [name for _, name, *_ in db.execute("PRAGMA table_info(fts_soleri)")]
    # The document's `description` is our `text`.
    assert columns == ["id", "title", "text", "context", "tags"]
    for part in ("USING fts5", "content='entries'", "content_rowid='rowid'", "tokenize='porter unicode61'"):
        assert part in sql


X = {"title": "x", "text": "x", "context": "x", "tags": ("x",)}
OWN = ({"title": "heron"}, {"id": "heron"}, {"text": "heron"}, {"tags": ("heron",)}, {"context": "heron"})
ONE_FIELD_EACH = [Entry(**{"id": f"i{at}", **X, **own}) for at, own in enumerate(OWN + ({},) * 20, 1)]
"""The word once in each field, in entries of five words."""
BM25 = "bm25(t, 5.0, 10.0, 3.0, 1.0, 2.0)"  # the document's weights in the order of its columns


def by_sqlite(entries, score, expression):
    """{id: score} of the document's FTS5 table, made with SQLite alone."""
    db = apsw.Connection(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE t USING fts5(id, title, description, context, tags, tokenize='porter unicode61')"
    )
    for e in entries:
        db.execute("INSERT INTO t VALUES(?, ?, ?, ?, ?)", (e.id, e.title, e.text, e.context, json.dumps(e.tags)))
    return dict(db.execute(f"SELECT id, -{score} FROM t WHERE t MATCH ?", (expression,)))


def by_us(entries, query):
    """{id: score} of the retriever, best first."""
    table = searcher(vault_of(*entries)).candidates(Query(query), parse_strategy("fts"))
    found = {table.entries[e]: score for e, score in zip(table.entry, table.column("fts"), strict=True)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def test_a_title_counts_most_then_id_description_tags_and_context():
    weights = {"title": 10.0, "id": 5.0, "text": 3.0, "tags": 2.0, "context": 1.0}
    assert DOCUMENTED.searching.field_weights == weights
    found = by_us(ONE_FIELD_EACH, "heron")
    assert list(found) == ["i1", "heron", "i3", "i4", "i5"]
    assert found == by_sqlite(ONE_FIELD_EACH, BM25, "heron")
    notes, query = random_notes(), "pond newt river"
    expected = by_sqlite(notes, BM25, soleri_or(query))
    assert by_us(notes, query) == dict(sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[:30])


def random_notes(seed=0):
    rng = np.random.default_rng(seed)
    words = ["heron", "reed", "marsh", "pond", "newt", "river"]
    said = lambda most: " ".join(rng.choice(words, size=rng.integers(0, most)))  # noqa: E731 -- five times one line
    texts = (dict(zip(X, map(said, (4, 12, 6, 4)), strict=True)) for _ in range(40))
    return [Entry(f"n{at}", **own | {"tags": tuple(own["tags"].split())}) for at, own in enumerate(texts)]


def test_without_bm25_the_default_rank_orders_what_is_found(monkeypatch):
    monkeypatch.setattr(keywords, "RANKING", "bm25_of_no_build")
    monkeypatch.setattr(keywords, "ranks_by_bm25", keywords.ranks_by_bm25.__wrapped__)
    notes = random_notes()
    plainly = by_sqlite(notes, "rank", "heron OR reed")
    assert plainly != by_sqlite(notes, BM25, "heron OR reed")
    found = by_us(notes, "heron reed")
    assert found == dict(sorted(plainly.items(), key=lambda pair: (-pair[1], pair[0]))[:30])
    assert len(search(vault_of(*notes), "heron reed")) == 30  # fewer than 50 results, and 10 of 30 are under half


@pytest.mark.parametrize("field", ["title", "text", "context", "tags", "id", "why"])
def test_the_vocabulary_reads_title_description_context_and_tags(field):
    plain_one = Entry("b", title="jwt", context="jwt")
    named = replace(plain_one, **{"id": "a", field: ("heron",) if field == "tags" else "heron"})
    hits = search(vault_of(named, plain_one, *OTHERS), "jwt heron")
    read = field in ("title", "text", "context", "tags")
    assert (signal(hits, "tfidf")[named.id] > signal(hits, "tfidf")["b"]) == read


def test_the_vocabulary_follows_the_vault():
    first, *rest = Entry("a", title="jwt", text="token token"), Entry("b", title="token"), Entry("c", text="cache")
    vault = vault_of(first)
    asker = searcher(vault)
    before = signal(asker.search("jwt token").hits, "tfidf")
    vault.upsert(rest)
    anew = search(vault_of(first, *rest), "jwt token")
    assert signal(asker.search("jwt token").hits, "tfidf") == signal(anew, "tfidf")
    assert before["a"] == pytest.approx(3 / math.sqrt(10))  # alone all IDF are 1: (1, 2) and (1, 1)


def test_the_stop_words_are_the_95_of_the_real_program():
    """systems/soleri.md, its tokenizer, word by word."""
    listed = TABLE.content["stop words"]
    assert len(set(listed)) == 95
    assert set(listed) == STOP_WORDS
    assert soleri_tokens(" ".join([*listed, "heron"])) == ["heron"]


KEYWORDS_ONLY = {"tfidf": 0.4, **dict.fromkeys(PRIORS, 0.15)}
HYBRID = {"tfidf": 0.25, "cosine": 0.15, **dict.fromkeys(PRIORS, 0.15)}


def lively():
    """Entries in which every signal takes several values."""
    labels, notes = ["critical", "warning", "suggestion"], []
    for i, note in enumerate(random_notes(1)[:24]):
        own = {"severity": labels[i % 3], "domain": ["auth", "data"][i % 2], "updated_at": NOW - i * YEAR / 10}
        window = {"valid_until": NOW + i * DAY, "valid_from": NOW - 10 * DAY} if i % 4 == 1 else {}
        notes.append(replace(note, title=f"heron {note.title}", **own, **window))
    return vault_of(*notes, cosines={note.id: 0.95 - i / 20 for i, note in enumerate(notes)})


@pytest.mark.parametrize(
    ("embedder", "weights"), [(None, KEYWORDS_ONLY), (Spy(), HYBRID)], ids=["words", "hybrid"]
)
def test_the_score_is_the_weighted_sum_of_the_signals(embedder, weights):
    assert sum(weights.values()) == pytest.approx(1.0)
    hits = search(lively(), "heron marsh", embedder, tags=("heron", "reed"), domain="auth")
    assert len(hits) == 24
    for hit in hits:
        assert set(hit.signals) == set(weights)
        assert hit.score == pytest.approx(sum(w * hit.signals[name] for name, w in weights.items()), rel=1e-12)
    for name in weights:
        assert len(set(signal(hits, name).values())) > 1
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    alike = vault_of(*(Entry(id_, title="heron") for id_ in ("b", "c", "a")), *OTHERS)
    assert ids(search(alike, "heron")) == ["a", "b", "c"]  # equal scores are ordered by id


def test_vectors_are_stored_in_float32_of_any_dimension():
    vault = vault_of(Entry("a", title="heron"))
    embed_missing(vault, Spy(dim=1536), bench.space)  # the document's example
    assert vault.spaces() == [(bench.space, 1536)]
    assert vault.vectors_of(bench.space, ["a"])["a"].dtype == np.float32
    assert signal(search(vault, "heron", Spy(dim=1536)), "cosine") == {"a": 1.0}
    place(vault, {"a": 0.1}, "other")  # an entry has a vector of every model
    assert signal(search(vault, "heron", Spy("other")), "cosine") == pytest.approx({"a": 0.1}, abs=1e-6)
    assert signal(search(vault, "heron", Spy(dim=1536)), "cosine") == {"a": 1.0}


def test_title_description_and_context_are_embedded_and_nothing_else():
    every = {f.name: f"<{f.name}>" for f in dataclasses.fields(Entry) if f.type == "str"}
    spy, vault = Spy(), vault_of(Entry(**every | {"id": "a"}, tags=("<tags>",), extra={"example": "<example>"}))
    embed_missing(vault, spy, bench.space)
    assert spy.batches == [["<title>\n<text>\n<context>"]]


def test_entries_are_embedded_in_batches_of_100_without_blank_lines():
    spy, vault = Spy(), vault_of(Entry("a", title="T", context="C"), Entry("b", text="D"), Entry("c", title="T"))
    embed_missing(vault, spy, bench.space)
    assert spy.batches == [["T\nC", "D", "T"]]
    vault = vault_of(*(Entry(f"e{i:03}", title=f"t{i}") for i in range(250)))
    assert embed_missing(vault, spy, bench.space) == 250
    assert [len(batch) for batch in spy.batches[1:]] == [100, 100, 50]


def test_entries_with_a_vector_of_the_active_model_are_skipped():
    vault, spy = vault_of(Entry("a", title="A"), Entry("b", title="B")), Spy()
    place(vault, {"a": 0.5})
    assert embed_missing(vault, spy, bench.space) == 1
    assert spy.batches == [["B"]]
    assert embed_missing(vault, spy, bench.space) == 0
    other = Spy("other")
    assert embed_missing(vault, other, space("other")) == 2  # a vector of another model is no reason to skip
    assert other.batches == [["A", "B"]]


def federation(tiers):
    """A federation of vaults, given as entries by tier."""
    made = [Tier(name, vault_of(*entries)) for name, entries in tiers.items()]
    return Federation(made, DOCUMENTED.federation)


def tier_of(hits):
    return {hit.entry.id: hit.entry.vault for hit in hits}


def weighted(store):
    """[(id, tier, weighted score)] of what the tiers found by keywords."""
    weights = [DOCUMENTED.searching.field_weights[name] for name in DOCUMENTED.reading.index.fields]
    found = store.keyword(DOCUMENTED.reading.index, soleri_or("heron"), weights, Filters(), 30)
    return [(*hit.id.split("\x1f"), hit.score) for hit in found]


def test_tiers_weigh_1_08_06_and_05_by_default():
    store = federation({name: [Entry(f"in-{name}", title="heron"), *OTHERS] for name in TIERS})
    # Four vaults that differ in one id have the same BM25 statistics.
    ((_, _, full), *_) = rows = weighted(store)
    assert [tier for _, tier, _ in rows] == ["agent", "project", "team", "archive"]
    assert [score / full for *_, score in rows] == pytest.approx([1.0, 0.8, 0.6, 0.5], rel=1e-12)
    assert tier_of(search(store, "heron")) == {f"in-{name}": name for name in TIERS}


def test_the_weighted_score_is_bm25_of_its_own_tier_times_the_priority():
    notes = random_notes(2)
    store = federation({"project": notes[:15], "team": notes[15:]})
    expected = [
        (id_, tier, score * weight)
        for tier, weight, own in (("project", 0.8, notes[:15]), ("team", 0.6, notes[15:]))
        for id_, score in by_sqlite(own, BM25, "heron").items()
    ]
    assert weighted(store) == sorted(expected, key=lambda row: (-row[2], row[0]))[:30]


def test_equal_weighted_scores_are_merged_by_id():
    tiers = {"x": [Entry("b", title="heron"), *OTHERS], "y": [Entry("a", title="heron"), *OTHERS]}
    assert [(id_, tier) for id_, tier, _ in weighted(federation(tiers))] == [("a", "y"), ("b", "x")]


def test_the_agents_copy_survives_though_its_bm25_is_lower():
    long = Entry("same", context="heron", text="filler " * 60)
    tiers = {"team": [Entry("same", title="heron heron"), *OTHERS], "agent": [long, *OTHERS]}
    alone = {name: weighted(federation({name: own}))[0][2] for name, own in tiers.items()}
    assert alone["agent"] < alone["team"]  # weighted by 0.6 already
    store = federation(tiers)
    assert weighted(store) == [("same", "agent", alone["agent"])]
    assert tier_of(search(store, "heron")) == {"same": "agent"}


def test_a_full_result_is_entry_score_and_breakdown():
    row, _ = TABLE.shown["test_a_scan_result_is_the_documented_first_look"]["rows"]
    entry = TABLE.entry(row["id"], row["entry"])
    hits = search(vault_of(entry, cosines={entry.id: 0.6}), "JWT", Spy(), tags=("jwt",), domain="auth")
    shown = DOCUMENTED.showing.present(hits[0])
    assert list(shown) == ["entry", "score", "breakdown"]
    assert shown["entry"] == {**entry.to_json(), "updated_at": "1972-01-01T00:00:00Z"}
    expected = {"vector": 0.6, "severity": 1.0, "temporalDecay": 0.5, "tagOverlap": 0.5, "domainMatch": 1.0}
    assert list(shown["breakdown"]) == ["semantic", *expected]
    semantic = shown["breakdown"].pop("semantic")
    assert shown["breakdown"] == pytest.approx(expected, abs=1e-6)
    # In a vocabulary of one entry each word has IDF 1: jwt is in it twice, five words once, five words five times.
    assert semantic == pytest.approx(2 / math.sqrt(2**2 + 5 * 1 + 5 * 5**2))
    assert shown["score"] == pytest.approx(0.25 * semantic + 0.15 * (0.6 + 1.0 + 0.5 + 0.5 + 1.0), abs=1e-6)
    (bare,) = search(vault_of(entry), "JWT")
    assert DOCUMENTED.showing.present(bare)["breakdown"]["vector"] == 0.0


def test_scan_first_then_load_the_best_by_id():
    vault = vault_of(*noted("heron", 12), *OTHERS)
    first = [DOCUMENTED.showing.scan(hit) for hit in search(vault, "heron")]
    chosen = [row["id"] for row in first[:2]]
    assert vault.get(chosen) == [hit.entry for hit in search(vault, "heron")[:2]]
    store = federation({"agent": noted("heron", 3), "team": [*noted("heron", 2), Entry("deep", title="heron")]})
    loaded = map(plain, store.get(["deep", "01", "nowhere"]))
    assert [(entry.id, entry.vault) for entry in loaded] == [("deep", "team"), ("01", "agent")]


def test_scan_and_full_rank_alike():
    hits = search(lively(), "heron marsh", Spy())
    scanned, whole = (list(map(show, hits)) for show in (DOCUMENTED.showing.scan, DOCUMENTED.showing.present))
    assert [(row["id"], row["score"]) for row in scanned] == [(row["entry"]["id"], row["score"]) for row in whole]


@pytest.fixture
def vaults(tmp_path):
    for name, entries in {
        "agent": [Entry("same", title="heron", text="the agent's"), *OTHERS],
        "project": [Entry("same", title="heron"), Entry("p", title="heron"), *OTHERS],
        "team": [Entry("same", title="heron", text="the team's"), Entry("t", title="heron"), *OTHERS],
    }.items():
        with vault_of(*entries, path=tmp_path / f"{name}.db") as vault:
            vault.ensure_index(DOCUMENTED.reading.index)  # searching would write none
    return tmp_path


def found_by(folder, *options, tiers=("agent", "project", "team")):
    paths = [folder / f"{name}.db" for name in tiers]
    return document("search", *paths, "heron", "--system", "soleri", *options)["hits"]


def test_the_command_line_scans_weighs_and_names_tiers(vaults, tmp_path):
    def holder(*options, **how):
        return {row["entry"]["id"]: row["entry"]["vault"] for row in found_by(vaults, *options, **how)}

    assert holder() == {"same": "agent", "p": "project", "t": "team"}
    assert holder("--set", "priority.team=1.5")["same"] == "team"
    assert holder("--set", "priority.project=2", "--set", "priority.team=1.5")["same"] == "project"
    mine = (f"mine={vaults / 'agent.db'}", vaults / "team.db")  # mine weighs 0.5
    told = document("search", *mine, "heron", "--system", "soleri")
    assert {hit["entry"]["vault"] for hit in told["hits"]} == {*told["tiers"]} == {"team"}
    rows = found_by(vaults, "--set", "mode=scan", "--set", "priority.team=0.9", tiers=("agent", "project"))
    assert {row["id"]: row["snippet"] for row in rows} == {"same": "the agent's", "p": ""}
    entries = document("vault", "get", vaults / "agent.db", "same")["entries"]
    assert [entry["text"] for entry in entries] == ["the agent's"]
    with Vault(tmp_path / "v.db", create=True) as vault:
        vault.upsert([Entry("a", text="heron", tags=("reed", "marsh"), domain="water")])
        vault.ensure_index(DOCUMENTED.reading.index)
    words = ["heron", "--system", "soleri", "--set", "tags=reed", "--set", "domain=water"]
    (hit,) = document("search", tmp_path / "v.db", *words)["hits"]
    assert (hit["breakdown"]["tagOverlap"], hit["breakdown"]["domainMatch"]) == (0.5, 1.0)  # one of two tags


@pytest.mark.parametrize(("words", "told"), TABLE.content["refused"])
def test_a_bad_tier_or_priority_is_one_message_and_exit_code_2(vaults, monkeypatch, words, told):
    monkeypatch.chdir(vaults)
    words = words.split()
    files = [word for word in words if word.endswith(".db")]
    result = done("search", *files, "heron", "--system", "soleri", *words[len(files) :], code=2)
    assert result.stdout == ""
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("soleri.md", before="## Newest") == statements(globals()) | TABLE.statements


def test_the_table_lists_every_parameter_in_which_the_profiles_differ():
    section = (DOCS / "soleri.md").read_text(encoding="utf-8").partition("## Documented against shipped")[2]
    listed = {*re.findall(r"^\| `(\w+)", section, re.MULTILINE)}
    differ = differing(DOCUMENTED, SHIPPED) - {"profile", "federation"}
    assert differ | differing(DOCUMENTED.federation, SHIPPED.federation) <= listed
