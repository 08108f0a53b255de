"""EchoVault's document, statement by statement; docs/echovault.md lists which test holds which.

Expected values come from the document's own listings and examples, or are worked out by hand beside
the test. Vectors are placed by their cosine with the query, which is always the vector (1, 0).
"""

import math
from dataclasses import replace

import apsw
import numpy as np
import pytest
from statements import Bench, Spy, ids, named, noted, scores, statements

from steelyard.base.errors import ConfigError, DimensionMismatchError
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import embed_missing
from steelyard.finish import finish
from steelyard.fusion import fuse, parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import Filters, Query
from steelyard.stores.base import Found
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.echovault import DOCUMENTED, prefix_or
from steelyard.table.join import join

TIERED = "tiered(fts, min_results={}, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"


bench = Bench(DOCUMENTED)
vault_of, SPACE = bench.vault, bench.space


def searcher(vault, embedder=None, limit=None, strategy=None, **filters):
    config = DOCUMENTED.config(limit, "spy")
    if strategy:
        config = config.with_strategy(parse_strategy(strategy))
    for name, where in filters.items():
        config = replace(
            config, retrievers=config.retrievers | {name: replace(config.retrievers[name], filters=where)}
        )
    return Searcher(vault, config, embedder, clock=lambda: 0.0)


def found(vault, query):
    return ids(searcher(vault).search(query).hits)


OTHERS = [Entry(f"other{i}", title="unrelated") for i in range(8)]
"""A word in more than half of the entries weighs next to nothing; these keep the words rare."""


# Keyword search


def test_the_index_covers_the_documented_columns_with_porter_over_unicode61(tmp_path):
    with Vault(tmp_path / "vault.db", create=True) as vault:
        searcher(vault).search("anything")
    db = apsw.Connection(str(tmp_path / "vault.db"))
    ((sql,),) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'fts_echovault'").fetchall()
    columns = [name for _, name, *_ in db.execute("PRAGMA table_info(fts_echovault)")]
    # The document's `what` is our `text`.
    assert columns == ["title", "text", "why", "impact", "tags", "category", "project", "source"]
    assert "using fts5" in sql.lower()
    assert "tokenize='porter unicode61'" in sql
    assert "content_rowid='rowid'" in sql


@pytest.mark.parametrize(
    "field", ["title", "text", "why", "impact", "tags", "category", "project", "source", "details", "context"]
)
def test_every_column_is_searched_and_nothing_else(field):
    value = ("heron",) if field == "tags" else "heron"
    indexed = field not in ("details", "context")
    assert found(vault_of(Entry("a", **{field: value})), "heron") == (["a"] if indexed else [])


WORDS = ("authentication", "authorization", "tokens", "other")
STEMS = ("run", "running", "ran")
ACCENTS = ("Café", "cafe", "кэш")


@pytest.mark.parametrize(
    ("titles", "query", "expected"),
    [
        # The document lists "ran" as a variant of run, too; Porter's algorithm has no rule for irregular verbs.
        *((STEMS, "run", ["run", "running"]), (STEMS, "running", ["run", "running"]), (STEMS, "ran", ["ran"])),
        (WORDS, "auth", ["authentication", "authorization"]),
        (WORDS, "auth token", ["authentication", "authorization", "tokens"]),
        *((ACCENTS, query, ["Café", "cafe"]) for query in ("café", "CAFE", "Café", "cafe")),
        (ACCENTS, "КЭШ", ["кэш"]),
        # What would be an operator is text.
        *((("heron",), query, ["heron"]) for query in ('"heron"', "heron*", "(heron", "heron AND NOT", "-heron")),
        *((("heron",), query, []) for query in ('"', "^:{}", 'he"ron" OR')),
    ],
)
def test_words_are_found_by_stem_and_prefix_without_accents_and_none_is_an_operator(titles, query, expected):
    assert sorted(found(vault_of(*(Entry(title, title=title) for title in titles)), query)) == expected


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("auth token", '"auth"* OR "token"*'),
        ("  auth \t token\n", '"auth"* OR "token"*'),
        ("Token token", '"Token"* OR "token"*'),
        ("src/memory/db.py", '"src/memory/db.py"*'),
    ],
)
def test_a_query_becomes_quoted_prefixes_joined_by_or(text, expression):
    assert prefix_or(text) == expression


@pytest.mark.parametrize("query", ["", "   ", "\t\n"])
def test_a_blank_query_is_refused_with_a_remedy(query):
    with pytest.raises(ConfigError, match="type at least"):
        searcher(vault_of(Entry("a", title="heron"))).search(query)


def test_bm25_ranks_by_relevance():
    # SQLite's bm25: k1 = 1.2, b = 0.75, idf = ln((N - n + 0.5) / (n + 0.5)) with N = 6, n = 2.
    # Lengths 1, 2 and four times 3 make a mean of 2.5.
    vault = vault_of(
        Entry("short", title="heron"),
        Entry("longer", title="heron", text="reeds"),
        *(Entry(f"other{i}", title="unrelated by far") for i in range(4)),
    )
    idf = math.log((6 - 2 + 0.5) / (2 + 0.5))
    expected = {
        id_: idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / 2.5)) for id_, length in (("short", 1), ("longer", 2))
    }
    hits = searcher(vault).search("heron").hits
    assert ids(hits) == ["short", "longer"]
    assert scores(hits) == pytest.approx(expected, rel=1e-12)


# Tiers and pools


def test_the_documented_numbers():
    config = DOCUMENTED.config()
    assert config.limit == 5
    assert config.depths == {"fts": 10, "vector": 10}
    assert str(config.strategy) == TIERED.format(3)
    assert {*config.retrievers["fts"].field_weights.values()} == {1.0}
    assert (DOCUMENTED.contexts.semantic, DOCUMENTED.contexts.topup_recent) == ("auto", True)
    assert find_system("echovault") is DOCUMENTED


@pytest.mark.parametrize("limit", [1, 4, 5])
def test_both_pools_are_twice_the_limit(limit):
    entries = noted("heron", 12)
    vault = vault_of(*entries, *OTHERS, cosines={e.id: 0.9 - i / 20 for i, e in enumerate(entries)})
    both = parse_strategy("weighted_sum(1*fts, 1*vector)")
    table = searcher(vault, Spy(), limit).candidates(Query("heron"), both)
    assert {name: int((~np.isnan(column)).sum()) for name, column in table.columns.items()} == {
        "fts": 2 * limit,
        "vector": 2 * limit,
    }


@pytest.mark.parametrize(("matches", "calls"), [(0, 1), (1, 1), (2, 1), (3, 0), (4, 0), (12, 0)])
def test_the_query_is_embedded_only_below_three_keyword_results(matches, calls):
    vault = vault_of(*noted("heron", matches), *OTHERS, cosines={"other0": 0.9, "other1": 0.8})
    spy = Spy()
    result = searcher(vault, spy).search("heron")
    assert (len(spy.texts), result.embedding_calls) == (calls, calls)
    semantic = {"other0", "other1"} & {*ids(result.hits)}
    assert len(semantic) == 2 * calls
    assert len(result.hits) == min(5, matches + len(semantic))


@pytest.mark.parametrize(
    ("least", "matches", "limit", "calls"),
    [
        *((least, 2, 5, calls) for least, calls in ((0, 0), (1, 0), (2, 0), (3, 1), (4, 1))),
        (3, 6, 1, 1),  # a pool of 2 x 1 never holds 3 results
    ],
)
def test_the_least_number_of_keyword_results_is_a_parameter(least, matches, limit, calls):
    vault = vault_of(*noted("heron", matches), *OTHERS, cosines={"other0": 0.9})
    asked = searcher(vault, Spy(), limit, TIERED.format(least))
    assert asked.search("heron").embedding_calls == calls


def test_enough_keyword_results_are_returned_as_they_are_cut_to_the_limit():
    vault = vault_of(*noted("heron", 7), *OTHERS, cosines={"06": 1.0, "other0": 0.9})
    hits = searcher(vault, Spy()).search("heron").hits
    assert ids(hits) == ["00", "01", "02", "03", "04"]
    assert [hit.score for hit in hits] == [hit.score for hit in searcher(vault).search("heron").hits]
    assert max(scores(hits).values()) != 1.0  # not divided by the maximum


# Merging


def merged(fts, vector, limit=5):
    lists = {
        name: [Found(id_, score, place) for place, (id_, score) in enumerate(rows.items(), 1)]
        for name, rows in (("fts", fts), ("vector", vector))
    }
    table = join([Query("q")], [0.0], [lists], {}, lambda found, *_: [Entry(id_) for id_ in found])
    ranking = finish(
        table,
        fuse(table, parse_strategy("weighted_sum(0.3*fts, 0.7*vector, normalize=max)")),
        DOCUMENTED.config(limit).finish,
    )
    rows = zip(ranking.row, ranking.score, strict=True)
    return [(table.entries[table.entry[row]], score) for row, score in rows]


@pytest.mark.parametrize(
    ("fts", "vector", "expected"),
    [
        # a: 0.3 * 5/5 + 0.7 * 0.3/0.9;  b: 0.3 * 2.5/5;  c: 0.3 * 1/5 + 0.7 * 0.9/0.9;  d: 0.7 * 0.6/0.9
        (
            {"a": 5.0, "b": 2.5, "c": 1.0},
            {"c": 0.9, "d": 0.6, "a": 0.3},
            {"c": 0.76, "a": 0.3 + 0.7 / 3, "d": 1.4 / 3, "b": 0.15},
        ),
        ({"a": 0.001}, {"a": 0.01}, {"a": 1.0}),  # the best of both, however weak
        ({"words": 9.0}, {"meaning": 0.1}, {"meaning": 0.7, "words": 0.3}),
        # A list whose maximum is not positive contributes nothing; the document's listing alone would turn it
        # upside down, the code of its date has the guard.
        *(({"a": 5.0}, {"b": own, "c": -0.4}, {"a": 0.3, "b": 0.0, "c": 0.0}) for own in (0.0, -0.2)),
    ],
)
def test_merging_divides_by_the_maximum_weighs_three_to_seven_and_adds_by_id(fts, vector, expected):
    ranked = merged(fts, vector)
    assert [id_ for id_, _ in ranked] == list(expected)
    assert dict(ranked) == pytest.approx(expected)
    assert merged(fts, vector, limit=1) == ranked[:1]


def test_search_merges_what_both_retrievers_found():
    # keyword: 0.3 * 1 + 0.7 * 0.5/1;  near: 0.7 * 1;  far: 0.7 * 0.25/1
    cosines = {"keyword": 0.5, "other0": 1.0, "other1": 0.25}
    vault = vault_of(Entry("keyword", title="heron"), *OTHERS, cosines=cosines)
    hits = searcher(vault, Spy()).search("heron").hits
    assert ids(hits) == ["other0", "keyword", "other1"]
    assert [hit.score for hit in hits] == pytest.approx([0.7, 0.65, 0.175], abs=1e-6)


def test_similarity_is_the_cosine_whatever_the_length():
    vault = vault_of(*OTHERS[:3])
    matrix = np.array([[30.0, 40.0], [0.06, 0.08], [-3.0, 4.0]], dtype=np.float32)
    vault.put_vectors(SPACE, ["other0", "other1", "other2"], matrix)
    table = searcher(vault, Spy()).candidates(Query("q"), parse_strategy("vector"))
    assert table.column("vector").tolist() == pytest.approx([0.6, 0.6, -0.6], abs=1e-6)


# Without vectors


@pytest.mark.parametrize("why", ["no embedder", "no vectors", "down"])
def test_without_vectors_keywords_answer_and_a_failure_is_said(why):
    cosines = {"other0": 0.9} if why == "down" else None
    embedder = None if why == "no embedder" else Spy(down=why == "down")
    result = searcher(vault_of(*noted("heron", 2), *OTHERS, cosines=cosines), embedder).search("heron")
    assert (ids(result.hits), result.degraded) == (["00", "01"], why == "down")
    assert why == "down" or result.embedding_calls == 0


# Filters


@pytest.mark.parametrize("field", ["project", "source"])
def test_keyword_filters_act_before_the_cut(field):
    # Six better matches elsewhere would fill a pool of 2 x 1 if the filter came later.
    mine = Entry("mine", title="heron", text="filler " * 20, **{field: "my-app"})
    elsewhere = [replace(entry, **{field: "other-app"}) for entry in noted("heron", 6)]
    vault = vault_of(mine, *elsewhere, *OTHERS)
    assert ids(searcher(vault, limit=1).search("heron").hits) == ["00"]
    inside = Query("heron", filters=Filters.of({field: "my-app"}))
    assert ids(searcher(vault, limit=1).search(inside).hits) == ["mine"]


def test_filters_are_exact_and_combine():
    vault = vault_of(
        Entry("both", title="heron", project="my-app", source="cursor"),
        Entry("project", title="heron", project="my-app", source="claude-code"),
        Entry("case", title="heron", project="My-App", source="cursor"),
    )
    scope = Filters.of({"project": "my-app", "source": "cursor"})
    assert ids(searcher(vault).search(Query("heron", filters=scope)).hits) == ["both"]


@pytest.mark.parametrize(
    ("where", "expected"), [(None, []), ("after_cut", []), ("before_cut", ["mine0", "mine1"])]
)
def test_vector_filters_act_after_the_cut_so_the_list_is_short(where, expected):
    theirs = {f"theirs{i}": 0.9 - i / 100 for i in range(4)}
    mine = {f"mine{i}": 0.5 - i / 10 for i in range(3)}
    entries = [Entry(id_, title="x", project=id_.rstrip("0123456789")) for id_ in (*theirs, *mine)]
    vault = vault_of(*entries, cosines=theirs | mine)
    by_place = {"vector": where} if where else {}
    query = Query("nothing", filters=Filters.of({"project": "mine"}))
    assert ids(searcher(vault, Spy(), limit=2, **by_place).search(query).hits) == expected


def test_what_the_vector_filter_leaves_keeps_its_place_in_the_pool():
    cosines = {"theirs": 0.9, "mine": 0.8}
    vault = vault_of(*(Entry(id_, project=id_) for id_ in cosines), cosines=cosines)
    query = Query("nothing", filters=Filters.of({"project": "mine"}))
    table = searcher(vault, Spy()).candidates(query, parse_strategy("vector"))
    assert (table.entries, table.positions["vector"].tolist()) == (("mine",), [2])


def test_the_tier_is_decided_after_the_filter():
    entries = [replace(entry, project="mine" if i < 2 else "theirs") for i, entry in enumerate(noted("heron", 5))]
    vault = vault_of(*entries, *OTHERS, cosines={"other0": 0.9})
    assert searcher(vault, Spy()).search("heron").embedding_calls == 0
    inside = Query("heron", filters=Filters.of({"project": "mine"}))
    assert searcher(vault, Spy()).search(inside).embedding_calls == 1


# Context retrieval


def dated(id_, day, **fields):
    return Entry(id_, created_at=parse_time(f"2026-03-{day:02d}"), **fields)


def diary(cosines=None):
    """Two entries that say heron, the older ones, and four newer ones that do not."""
    return vault_of(
        dated("h1", 1, title="heron", project="marsh"),
        dated("h2", 2, title="heron", text="reeds", project="marsh"),
        dated("n3", 3, title="newt", project="marsh"),
        dated("n4", 4, title="newt", project="pond"),
        dated("n5", 5, title="newt", project="marsh"),
        dated("n6", 6, title="newt", project="pond"),
        cosines=cosines,
    )


def context(vault, text, limit, embedder=None, scope=None, **how):
    filters = Filters.of(scope or {})
    settings = {"semantic": DOCUMENTED.contexts.semantic, "topup_recent": DOCUMENTED.contexts.topup_recent} | how
    return searcher(vault, embedder, limit).context(text, filters, **settings)


@pytest.mark.parametrize(
    ("mode", "warm", "calls"),
    [("auto", True, 1), ("auto", False, 0), ("always", True, 1), ("always", False, 1), ("never", True, 0)],
)
def test_semantic_modes(mode, warm, calls):
    spy = Spy(warm=warm)
    hits, _ = context(diary({"n3": 0.9}), "heron", 5, spy, semantic=mode, topup_recent=False)
    assert len(spy.texts) == calls
    assert ("n3" in ids(hits)) == (calls == 1)
    hits, _ = context(diary(), "heron", 5, Spy(), semantic=mode, topup_recent=False)  # which has no vectors
    assert sorted(ids(hits)) == ["h1", "h2"]


def test_an_unknown_semantic_mode_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"'sometimes'.*always, auto, never"):
        context(diary({"n3": 0.9}), "heron", 5, Spy(), semantic="sometimes")


@pytest.mark.parametrize(
    ("text", "limit", "how", "found", "recent", "total"),
    [
        ("heron", 5, {}, ["h1", "h2"], ["n6", "n5", "n4"], 6),  # newest first, and never twice
        ("newt", 4, {"scope": {"project": "marsh"}}, ["n3", "n5"], ["h2", "h1"], 4),  # the same filters
        ("newt", 6, {}, ["n3", "n4", "n5", "n6"], ["h2", "h1"], 6),  # found already, though they are the newest
        ("newt", 3, {}, ["n3", "n4", "n5"], [], 6),  # a full list is not filled up
        ("heron", 5, {"topup_recent": False}, ["h1", "h2"], [], 6),
    ],
)
def test_recent_entries_fill_up_newest_first_and_never_twice(text, limit, how, found, recent, total):
    hits, count = context(diary(), text, limit, **how)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.entry.id for hit in hits if hit.score is not None] == found
    assert ([hit.entry.id for hit in hits if hit.score is None], count) == (recent, total)


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize("topup", [True, False])
def test_without_a_query_the_context_is_the_newest_entries(text, topup):
    spy = Spy()
    hits, total = context(diary({"n3": 0.9}), text, 2, spy, semantic="always", topup_recent=topup)
    assert (ids(hits), total, spy.texts) == (["n6", "n5"], 6, [])


# Vector storage


def test_another_dimension_is_refused_with_both_numbers_and_the_remedy():
    vault = vault_of(Entry("a", text="one"), cosines={"a": 1.0})
    for attempt in (
        lambda: vault.put_vectors(SPACE, ["a"], np.ones((1, 768), dtype=np.float32)),
        lambda: searcher(vault, Spy(dim=768)).search("nothing"),
    ):
        with pytest.raises(DimensionMismatchError, match=r"\b2\b.*\b768\b.*--rebuild"):
            attempt()
    assert vault.spaces() == [(SPACE, 2)]
    vault.drop_space(SPACE)  # as --rebuild does; the first embedding fixes the dimension
    assert vault.spaces() == []
    embed_missing(vault, Spy(dim=768), SPACE)
    assert (vault.spaces(), vault.missing(SPACE)) == ([(SPACE, 768)], [])
    assert ids(searcher(vault, Spy(dim=768)).search("nothing").hits) == ["a"]


def test_details_are_neither_indexed_nor_embedded():
    texts = {"title": "Title", "text": "What", "why": "Why", "impact": "Impact", "details": "secret"}
    vault, spy = vault_of(Entry("a", tags=("one", "two"), **texts)), Spy()
    embed_missing(vault, spy, SPACE)
    # Which fields are embedded the document leaves open; the code of its date joins these by blanks.
    assert spy.texts == ["Title What Why Impact one two"]
    assert found(vault, "secret") == []


# Results


POINTER = {
    "id": "a1b2c3d4",
    "title": "Switched to JWT auth",
    "what": "Replaced session cookies with JWT tokens",
    "why": "Needed stateless auth for API",
    "impact": "All endpoints now require Bearer token",
    "category": "decision",
    "tags": ["auth", "jwt"],
    "project": "my-app",
    "source": "claude-code",
    "score": 0.87,
    "has_details": True,
    "created_at": "2026-03-01T10:30:00Z",
}
"""The document's example of a result."""


def pointed(**changes):
    same = {name: POINTER[name] for name in ("id", "title", "why", "impact", "category", "project", "source")}
    made = {"text": POINTER["what"], "tags": ("auth", "jwt"), "details": "The whole story"}
    return Entry(**same, **made | {"created_at": parse_time(POINTER["created_at"])} | changes)


def test_a_result_is_the_documented_pointer_key_by_key():
    shown = DOCUMENTED.showing.present(Hit(1, 0.87, pointed()))
    assert shown == POINTER
    assert list(shown) == list(POINTER)
    assert shown["has_details"] is True
    assert DOCUMENTED.showing.present(Hit(1, 0.87, pointed(details="")))["has_details"] is False


def test_results_come_back_from_the_vault_as_they_went_in():
    vault = vault_of(pointed(), *OTHERS)
    (hit,) = searcher(vault).search("JWT auth").hits
    shown = DOCUMENTED.showing.present(hit)
    assert shown | {"score": 0.87} == POINTER
    assert shown["score"] > 0
    assert [entry.details for entry in vault.get(["a1b2c3d4", "absent"])] == ["The whole story"]


# The table of statements


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("echovault.md", before="## Documented against shipped") == statements(globals())
