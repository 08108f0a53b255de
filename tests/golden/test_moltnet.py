"""MoltNet's document, statement by statement; docs/moltnet.md lists which test holds which.

Expected values are the document's own, or are worked out by hand beside the test. Vectors are placed by
their cosine with the query, which is always the vector (1, 0).
"""

import dataclasses
import json
import math
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner
from statements import Bench, Spy, ids, named, scores, statements

from steelyard.base.extensions import EXTRAS
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.extensions.models import MiniLmInt8Embedder
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry, Relation
from steelyard.memory.query import EVERYTHING, Filters, Query, visible_to
from steelyard.memory.text import render
from steelyard.systems import find_system
from steelyard.systems.moltnet import DOCUMENTED, SHIPPED
from steelyard_eval.cli.main import main

HOUR = 3_600.0
NOW = 10_000 * HOUR
HALF_LIFE = math.log(0.5) / math.log(0.99)

bench = Bench(DOCUMENTED)
vault_of = bench.vault


def searcher(vault, embedder=None, limit=None, visible=EVERYTHING, strategy=None):
    config = DOCUMENTED.config(limit, embedder.model if embedder else "")
    if strategy:
        config = config.with_strategy(parse_strategy(strategy))
    return Searcher(vault, config, embedder, clock=lambda: NOW, visible=visible)


def weighted(w_relevance=1.0, w_recency=0.0, w_importance=0.0):
    """The documented strategy under these weights."""
    recency = f"recency(half_life={HALF_LIFE}h, since=access)"
    return f"weighted_sum({w_relevance}*rrf(vector, fts, k=60), {w_recency}*{recency}, {w_importance}*importance)"


def hits(vault, query, embedder=None, filters=None, **how):
    return searcher(vault, embedder, **how).search(Query(query, filters=Filters.of(filters or {}))).hits


def found(vault, query, embedder=None, **how):
    return ids(hits(vault, query, embedder, **how))


def said(**texts):
    return [Entry(id_, text=text) for id_, text in texts.items()]


# The preset and the table of statements


def test_the_documented_strategy_and_numbers():
    config = DOCUMENTED.config()
    assert config.strategy == parse_strategy(weighted(1, 0, 0))
    assert [str(stage) for stage in config.finish] == ["drop(lexical)", "cut(10)"]
    assert find_system("moltnet") is DOCUMENTED


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("moltnet.md") == statements(globals())


def test_the_profiles_differ_in_their_names_alone():
    differ = {
        f.name for f in dataclasses.fields(DOCUMENTED) if getattr(DOCUMENTED, f.name) != getattr(SHIPPED, f.name)
    }
    assert differ == {"profile"}
    assert find_system("moltnet:shipped") is SHIPPED


# Hybrid retrieval


def test_one_text_is_read_by_both_retrievers():
    spy = Spy()
    vault = vault_of(*said(word="herons deployed", meant="a bird"), cosines={"word": 0.5, "meant": -0.9})
    result = searcher(vault, spy).search('heron "deploy"')
    assert spy.texts == ['heron "deploy"']
    # There is no least similarity.
    assert scores(result.hits) == pytest.approx({"word": 2 / 61, "meant": 1 / 62}, abs=1e-12)


def test_keywords_read_title_content_and_tags():
    vault = vault_of(
        *(Entry("title", title="heron"), Entry("content", text="heron"), Entry("tag", tags=("scope:heron",))),
        *(Entry("why", why="heron"), Entry("details", details="heron"), Entry("vault", vault="heron")),
    )
    # "scope:heron" is two words to the parser of PostgreSQL, so the second is found (systems/moltnet.md).
    assert sorted(found(vault, "heron")) == ["content", "tag", "title"]


def test_both_pools_are_twice_the_limit():
    entries = said(**{f"word{i}": "heron" for i in range(9)}, **{f"near{i}": "bird" for i in range(9)})
    vault = vault_of(*entries, cosines={f"near{i}": 0.9 - i / 10 for i in range(9)})
    table = searcher(vault, Spy(), limit=3).search("heron").table
    assert [int((~np.isnan(table.column(name))).sum()) for name in ("fts", "vector")] == [6, 6]


# Scoring


def test_ranks_are_fused_by_reciprocals():
    # By words: twice beats once. By vectors: near, mid, twice. What is missing in a list gets nothing for it.
    vault = vault_of(
        *said(near="bird", mid="bird", once="heron", twice="heron heron"),
        cosines={"near": 0.9, "mid": 0.8, "twice": 0.7},
    )
    expected = {"twice": 1 / 63 + 1 / 61, "near": 1 / 61, "mid": 1 / 62, "once": 1 / 62}
    result = hits(vault, "heron", Spy())
    assert scores(result) == pytest.approx(expected, abs=1e-12)
    assert ids(result) == ["twice", "near", "mid", "once"]  # equal scores by id


def test_the_three_parts_are_weighed_and_added():
    entry = Entry("a", text="heron", created_at=0.0, last_accessed_at=NOW - 24 * HOUR, importance=8.0)
    vault = vault_of(entry, cosines={"a": 0.5})
    [hit] = hits(vault, "heron", Spy(), strategy=weighted(0.5, 0.3, 0.2))
    assert hit.score == pytest.approx(0.5 * (1 / 61 + 1 / 61) + 0.3 * 0.99**24 + 0.2 * 0.8, abs=1e-12)


@pytest.mark.parametrize(
    ("about", "weights", "expected"),
    [
        # The figures stand in systems/moltnet.md: 1 day 0.786, 7 days 0.185, 30 days 0.0007.
        *(
            ({"created_at": NOW - hours * HOUR}, (0, 1, 0), value)
            for hours, value in ((0, 1.0), (1, 0.99), (24, 0.786), (168, 0.185), (720, 0.0007))
        ),
        # Age runs from the last access and else from creation; what is dated later, or never, counts as new.
        ({"created_at": NOW - 900 * HOUR, "last_accessed_at": NOW - 2 * HOUR}, (0, 1, 0), 0.99**2),
        ({"created_at": NOW - 3 * HOUR, "updated_at": NOW}, (0, 1, 0), 0.99**3),
        ({"created_at": NOW + 5 * HOUR}, (0, 1, 0), 1.0),
        ({}, (0, 1, 0), 1.0),
        # Importance is a tenth, and five where none is given.
        ({"importance": 8.0}, (0, 0, 1), 0.8),
        ({}, (0, 0, 1), 0.5),
        ({"created_at": 0.0, "importance": 1.0}, (1, 0, 0), 1 / 61),  # relevance alone counts by default
    ],
)
def test_recency_falls_by_a_hundredth_an_hour_and_importance_is_a_tenth(about, weights, expected):
    [hit] = hits(vault_of(Entry("a", text="heron", **about)), "heron", strategy=weighted(*weights))
    assert hit.score == pytest.approx(expected, abs=5e-4 if expected in (0.786, 0.185, 0.0007) else 1e-12)


RAISED = [
    Entry("old", text="heron heron", created_at=NOW - 9000 * HOUR, importance=2.0),
    Entry("recent", text="heron", created_at=NOW - HOUR, importance=2.0),
    Entry("curated", text="heron marsh reed", created_at=NOW - 9000 * HOUR, importance=10.0),
]
"""By words: old, then curated and recent, which tie."""


@pytest.mark.parametrize(
    ("weights", "first"),
    [((1, 0, 0), "old"), ((1, 0.2, 0), "recent"), ((1, 0, 0.2), "curated"), ((0, 0.5, 0.1), "recent")],
)
def test_raising_a_weight_lets_its_signal_decide(weights, first):
    # Reciprocal ranks differ by 1/61 - 1/63 = 0.0005 at most; 0.2 * 0.99 and 0.2 * 0.8 are far more.
    assert found(vault_of(*RAISED), "heron", strategy=weighted(*weights))[0] == first
    # Without relevance the ranks count for nothing: 0.5 * 0.2 for two; of equal scores the lower id is first.
    result = hits(vault_of(*RAISED), "heron", strategy=weighted(0, 0, 0.5))
    assert [(hit.entry.id, hit.score) for hit in result] == [("curated", 0.5), ("old", 0.1), ("recent", 0.1)]


def test_recency_and_importance_retrieve_nothing():
    vault = vault_of(*said(word="heron"), Entry("important", text="reed", created_at=NOW, importance=10.0))
    assert found(vault, "heron", strategy=weighted(1, 1, 1)) == ["word"]


def test_the_list_is_sorted_and_cut_to_the_limit():
    vault = vault_of(*(Entry(f"e{i}", text="heron " * (i + 1)) for i in range(9)))
    result = hits(vault, "heron", limit=4)
    assert ids(result) == ["e8", "e7", "e6", "e5"]
    assert [hit.rank for hit in result] == [1, 2, 3, 4]


def test_a_result_shows_the_entry_and_its_combined_score():
    entry = Entry("a", title="Incident", text="heron", tags=("t",), type="episodic", vault="D1", importance=7.0)
    [hit] = hits(vault_of(entry), "heron")
    shown = DOCUMENTED.showing.present(hit)
    assert shown["combined_score"] == hit.score
    expected = ("a", "Incident", "heron", ["t"], "episodic", "D1", 7.0)
    names = ("id", "title", "content", "tags", "entry_type", "diary_id", "importance")
    assert tuple(shown[name] for name in names) == expected


# Filters


AUTH, OLD, DRAFT = {"tags": ["scope:auth"]}, {"tags": {"none": ["draft", "old"]}}, {"tags": ("draft",)}
BOTH = {"tags": {"all": ["incident"], "none": ["draft"]}, "type": "episodic", "created_at": {"from": 10}}
EPISODE = {"type": "episodic", "created_at": 30.0}
FILTERS = {
    "required tags, all": (
        {"tags": ["scope:auth", "incident"]},
        {"tags": ("scope:auth", "x", "incident")},
        {"tags": ("scope:auth", "other")},
    ),
    "required tag of none": (AUTH, {"tags": ("scope:auth",)}, {}),
    "excluded tags": (OLD, {"tags": ("fine",)}, {"tags": ("fine", "old")}),
    "excluded tags of none": (OLD, {}, DRAFT),
    "types": ({"type": ["episodic", "reflection"]}, {"type": "reflection"}, {"type": "procedural"}),
    "superseded": ({"superseded": False}, {}, {"superseded_by": "x"}),
    "created": ({"created_at": {"from": 10, "before": 20}}, {"created_at": 10.0}, {"created_at": 20.0}),
    "diary": ({"vault": "D1"}, {"vault": "D1"}, {"vault": "D2"}),
    "several": (BOTH, {"tags": ("incident",), **EPISODE}, {"tags": ("incident", "draft"), **EPISODE}),
}
"""What is asked, and the fields of an entry that passes and of one that does not."""


@pytest.mark.parametrize("name", FILTERS)
def test_filters_act_inside_both_retrievers_before_the_pools_are_cut(name):
    """Ten better entries that do not pass take no place: pools of twice the limit hold the four that do."""
    asked, passing, failing = FILTERS[name]
    better = [Entry(f"better{i}", text="heron heron heron", **failing) for i in range(10)]
    inside = [Entry(f"inside{i}", text="heron", **passing) for i in range(4)]
    cosines = {entry.id: 0.9 - 0.01 * i for i, entry in enumerate((*better, *inside))}
    search = searcher(vault_of(*better, *inside, cosines=cosines), Spy(), limit=2)
    table = search.search(Query("heron", filters=Filters.of(asked))).table
    assert table.entries == ("inside0", "inside1", "inside2", "inside3")
    assert not np.isnan([table.column("fts"), table.column("vector")]).any()


def test_only_an_accepted_successor_supersedes():
    entries = [
        *said(replaced="heron", disputed="heron", cited="heron"),
        Entry("new", text="heron", relations=(Relation("supersedes", "replaced", None, "accepted"),)),
        Entry("draft", text="heron", relations=(Relation("supersedes", "disputed", None, "proposed"),)),
        Entry("note", text="heron", relations=(Relation("elaborates", "cited", None, "accepted"),)),
    ]
    vault = vault_of(*entries)
    assert sorted(found(vault, "heron", filters={"superseded": False})) == [
        "cited",
        "disputed",
        "draft",
        "new",
        "note",
    ]
    assert sorted(found(vault, "heron")) == ["cited", "disputed", "draft", "new", "note", "replaced"]


# Scopes

DIARIES = [
    Entry("mine", text="heron", vault="D1", tenant="TB"),
    Entry("team", text="heron", vault="D2", tenant="TA"),
    Entry("foreign", text="heron heron heron", vault="D3", tenant="TB", created_at=NOW, importance=10.0),
]
CALLER = visible_to({"vault": ("D1",), "tenant": ("TA",)})
NEAR = {"mine": 0.3, "team": 0.2, "foreign": 0.9}


@pytest.mark.parametrize(
    "filters", [{}, {"vault": ["D1", "D2", "D3"]}, {"tenant": ["TA", "TB"]}, {"superseded": False}]
)
@pytest.mark.parametrize("strategy", [weighted(), weighted(1, 1, 1), "fts", "vector", "importance"])
def test_a_caller_sees_his_diaries_and_teams_and_nothing_else(filters, strategy):
    vault = vault_of(*DIARIES, cosines=NEAR)
    assert sorted(found(vault, "heron", Spy(), filters=filters, strategy=strategy, visible=CALLER)) == [
        "mine",
        "team",
    ]


def test_what_lies_outside_cannot_be_asked_for():
    vault = vault_of(*DIARIES, cosines=NEAR)
    assert found(vault, "heron", Spy(), filters={"vault": "D3"}, visible=CALLER) == []
    assert found(vault, "heron", Spy(), filters={"vault": "D1"}, visible=CALLER) == ["mine"]
    assert found(vault, "heron", Spy(), visible=visible_to({})) == []


def test_a_context_obeys_the_caller_s_scope():
    vault = vault_of(*DIARIES, cosines=NEAR)
    search = searcher(vault, Spy(), visible=CALLER)
    for text in ("heron", "xylophone", ""):
        entries, total = search.context(text, topup_recent=True)
        assert (sorted(ids(entries)), total) == (["mine", "team"], 2)


def run(*arguments):
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    return json.loads(done.stdout) if done.exit_code == 0 else done.stderr


SEEN = ("--scope", "vault=D1", "--scope", "tenant=TA")


def test_the_commands_obey_the_caller_s_scope(tmp_path):
    path = tmp_path / "vault.db"
    vault_of(*DIARIES, path=path).close()
    searched = run("search", path, "heron", "--system", "moltnet", *SEEN)["hits"]
    listed = run("vault", "list", path, *SEEN)
    recent = run("vault", "context", path, *SEEN)
    for rows in (searched, listed["entries"], recent["entries"]):
        assert sorted(row["id"] for row in rows) == ["mine", "team"]
    assert (listed["total"], recent["total"]) == (2, 2)
    assert run("vault", "list", path, *SEEN, "--filter", "vault=D3")["total"] == 0
    got = run("vault", "get", path, "team", "mine", *SEEN)["entries"]
    assert [entry["id"] for entry in got] == ["team", "mine"]
    # What lies outside does not exist by its id, and a wrong id is not set right with a hidden one.
    absent = run("vault", "get", path, "absent", *SEEN)
    assert run("vault", "get", path, "foreign", *SEEN) == absent.replace("absent", "foreign")
    assert "foreign" not in run("vault", "get", path, "foreigm", *SEEN)


# Tags


def test_the_embedded_text_has_a_line_for_every_tag():
    entry = Entry("a", title="Rotation", text="Done.", tags=("scope:auth", "decision"))
    assert render(DOCUMENTED.reading.recipe, entry) == "Rotation\nDone.\ntag:scope:auth\ntag:decision"
    assert render(DOCUMENTED.reading.recipe, Entry("a", text="Done.")) == "Done."


NOTES = {
    "rotated": "The old ones were replaced last night, and nobody noticed.",
    "lunch": "The canteen has a new menu, with soup on Fridays.",
    "garden": "Roses and herbs were planted behind the office.",
    "printer": "The printer on the second floor works again.",
}


@pytest.mark.skipif(
    any(find_spec(module) is None for module in EXTRAS["onnx"]), reason="the extra onnx is not installed"
)
def test_a_concept_that_stands_only_in_tags_is_found_by_meaning():
    embedder = MiniLmInt8Embedder()
    first = {}
    for tags in ((), ("scope:auth", "credentials", "passwords")):
        vault = vault_of(*(Entry(id_, text=text, tags=tags * (id_ == "rotated")) for id_, text in NOTES.items()))
        embed_missing(vault, embedder, space_of(embedder, "text", DOCUMENTED.reading.recipe))
        result = searcher(vault, embedder).search("login secrets")
        assert np.isnan(result.table.columns["fts"]).all()  # no word of it stands anywhere
        first[tags] = ids(result.hits)[0], result.hits[0].score
    assert [id_ for id_, _ in first.values()] != ["rotated", "rotated"]
    assert list(first.values())[1] == ("rotated", pytest.approx(1 / 61, abs=1e-12))


# Query syntax


AUDITS = {
    "phrase": "run npm audit today",
    "apart": "npm has an audit",
    "turned": "audit npm",
    "plural": "npm audits",
}
HOLES = {"both": "the audit found a security vulnerability", "phrase": "a security vulnerability"}


@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        (
            {
                "all": "tenants: resolution by the plugins of auth",
                "three": "auth plugin resolution",
                "none": "heron",
            },
            "auth plugin tenant resolution",
            ["all"],
        ),
        (AUDITS, '"npm audit"', ["phrase", "plural"]),
        (AUDITS, "npm audit", ["apart", "phrase", "plural", "turned"]),
        # A plus is a word among the others.
        ({**HOLES, "apart": "security audit of a vulnerability"}, '"security vulnerability" +audit', ["both"]),
        ({"cache": "a cache", "redis": "redis", "heron": "a heron"}, "cache OR redis", ["cache", "redis"]),
    ],
)
def test_plain_words_are_all_asked_for_quotes_ask_for_a_phrase_and_or_for_either(texts, query, expected):
    assert sorted(found(vault_of(*said(**texts)), query)) == expected


def test_meaning_comes_from_the_vectors_whatever_the_syntax():
    vault = vault_of(*said(word="npm audit", meant="a check of packages"), cosines={"meant": 0.9})
    assert sorted(found(vault, '"npm audit"', Spy())) == ["meant", "word"]
    assert found(vault, "the of and", Spy()) == ["meant"]  # stop words alone are found by meaning alone


# Negation

DEPLOYS = said(
    production="deploy to production", staging="deploy to staging", release="shipped a release", heron="heron"
)
CLOSE = {"staging": 0.9, "release": 0.8, "heron": 0.1}


def test_excluded_words_are_excluded():
    vault = vault_of(*DEPLOYS, cosines=CLOSE)
    assert "staging" in found(vault, "deploy", Spy())
    spy = Spy()
    assert found(vault, "deploy -staging", spy) == ["production"]
    assert spy.texts == ["deploy -staging"]  # excluded words are embedded with the query


def test_an_excluded_phrase_is_excluded():
    vault = vault_of(*said(phrase="security: npm audit", apart="security audit of npm"), cosines={"phrase": 0.9})
    assert found(vault, 'security -"npm audit"', Spy()) == ["apart"]


def test_negation_drops_what_only_meaning_found_unless_the_words_match_too():
    """And nothing is fetched in its place: one hit of ten, though three more entries have vectors."""
    vault = vault_of(*DEPLOYS, cosines=CLOSE)
    result = searcher(vault, Spy()).search("deploy -staging")
    assert ids(result.hits) == ["production"]
    assert sorted(id_ for id_ in result.table.entries) == ["heron", "production", "release", "staging"]
    assert sorted(found(vault, "deploy", Spy())) == ["heron", "production", "release", "staging"]


def test_negation_keeps_what_meaning_found_and_the_words_allow():
    # Pools of 4. By words a to d, which all tie at 0, so ids decide and z stays outside; by vectors z, staging.
    vault = vault_of(
        *said(a="x", b="x", c="x", d="x", staging="staging", z="x"), cosines={"z": 0.9, "staging": 0.8}
    )
    expected = {"a": 1 / 61, "z": 1 / 61}
    assert scores(hits(vault, "-staging", Spy(), limit=2)) == pytest.approx(expected, abs=1e-12)


def test_negation_acts_on_the_fused_list_and_leaves_ranks_as_they_were():
    # By vectors staging is first and both second; by words both alone.
    vault = vault_of(*said(staging="deploy staging", both="deploy"), cosines={"staging": 0.9, "both": 0.8})
    assert scores(hits(vault, "deploy -staging", Spy())) == pytest.approx({"both": 1 / 62 + 1 / 61}, abs=1e-12)


def test_without_a_negation_nothing_is_dropped():
    vault = vault_of(*DEPLOYS, cosines=CLOSE)
    for query in ("xylophone", '"deploy staging"', "deploy -the"):  # the last excludes a stop word: nothing
        assert {"release", "heron"} <= {*found(vault, query, Spy())}


# Without an embedding


def test_without_an_embedding_words_answer_alone():
    vault = vault_of(*said(word="heron", bird="bird"), cosines={"bird": 0.9})
    for embedder in (None, Spy(down=True)):
        result = searcher(vault, embedder).search("heron")
        assert scores(result.hits) == pytest.approx({"word": 1 / 61}, abs=1e-12)
        assert result.degraded == (embedder is not None)
    assert found(vault, "deploy -staging") == []


def test_an_entry_without_a_vector_is_found_by_its_words():
    vault = vault_of(*said(bare="heron", other="bird"), cosines={"other": 0.9})
    assert scores(hits(vault, "heron", Spy())) == pytest.approx({"bare": 1 / 61, "other": 1 / 61}, abs=1e-12)


# list, search, get


@pytest.fixture
def diary(tmp_path):
    """Fifteen decisions about the heron and five about other things, on a file."""
    path = tmp_path / "diary.db"
    many = [
        Entry(
            f"d{i:02d}",
            text="heron " * (i + 1),
            tags=("decision",),
            created_at=i * HOUR,
            details="the whole story",
        )
        for i in range(15)
    ]
    vault_of(*many, *(Entry(f"x{i}", text="heron reed", tags=("note",)) for i in range(5)), path=path).close()
    return path


def test_list_enumerates_all_that_passes_newest_first(diary):
    listed = run("vault", "list", diary, "--filter", "tags=decision")
    assert listed["total"] == 15
    assert [entry["id"] for entry in listed["entries"]] == [f"d{i:02d}" for i in reversed(range(15))]
    assert not any("score" in entry for entry in listed["entries"])


def test_search_ranks_under_the_same_filters_and_stops_at_the_limit(diary):
    rows = run("search", diary, "heron", "--system", "moltnet", "--filter", "tags=decision")["hits"]
    # ts_rank grows with the count and saturates, so the longest entries lead; ten is the default limit.
    assert [row["id"] for row in rows] == [f"d{i:02d}" for i in range(14, 4, -1)]
    assert rows[0]["combined_score"] == pytest.approx(1 / 61, abs=1e-12)
    [entry] = run("vault", "get", diary, "d03")["entries"]
    assert (entry["id"], entry["details"]) == ("d03", "the whole story")


def test_searching_and_reading_change_nothing():
    vault = vault_of(*said(a="heron"), cosines={"a": 0.9})
    before = vault.revision(), vault.get(["a"])
    found(vault, "heron", Spy())
    assert (vault.revision(), vault.get(["a"])) == before
