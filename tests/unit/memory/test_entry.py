"""Entries, queries, times and filters as they are read; scopes in SQL and in Python admit the same entries.

The expected entries come from `holds`, which reads the JSON form by its own sentences and shares no code with
either."""

import json
import random
import time
import unicodedata
from datetime import UTC, datetime

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError
from steelyard.base.fields import format_time, parse_time
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.live import search as live_search
from steelyard.live.search import Searcher
from steelyard.memory import query as door
from steelyard.memory.entry import Entry, Relation, read_entry
from steelyard.memory.query import Filters, Query, clean_query, valid_at, visible_to
from steelyard.memory.text import STOP_WORDS, content, terms
from steelyard.retrievers.kinds import words_or
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.echovault import prefix_or
from steelyard_eval.datasets.corpus_and_queries import read_query

# date -u -d @1795305600  ->  2026-11-22T00:00:00Z
MIDNIGHT = 1795305600.0


@pytest.fixture
def far_east(monkeypatch):
    """Put the machine's clock nine hours ahead of UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


class TestTimes:
    @pytest.mark.parametrize(
        ("written", "seconds"),
        [
            ("2026-11-22", MIDNIGHT),
            ("2026-11-22T00:00:00", MIDNIGHT),
            ("2026-11-22T00:00:00Z", MIDNIGHT),
            ("2026-11-22T02:00:00+02:00", MIDNIGHT),
            ("2026-11-22T00:00:00.250Z", MIDNIGHT + 0.25),
            ("1969-12-31T23:59:59", -1.0),
            (1795305600, MIDNIGHT),
            (1.5, 1.5),
        ],
    )
    def test_a_time_without_zone_is_utc_wherever_the_machine_stands(self, written, seconds, far_east):
        assert parse_time(written) == seconds

    @pytest.mark.parametrize(
        "written",
        ["", "yesterday", "2026-13-01", "22.11.2026", True, None, [], float("nan"), float("inf")],
    )
    def test_what_is_not_a_time_is_refused(self, written):
        with pytest.raises(ValueError, match=r"\w"):
            parse_time(written)

    @pytest.mark.parametrize("written", [1e17, 1795305600000, 1e300, "9999-12-31T23:59:59-14:00"])
    def test_a_time_beyond_the_calendar_is_refused(self, written):
        with pytest.raises((ValueError, OverflowError)):
            parse_time(written)

    @given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))
    def test_whole_seconds_survive_writing_and_reading(self, moment):
        seconds = float(int(moment.replace(tzinfo=UTC).timestamp()))
        assert parse_time(format_time(seconds)) == seconds


class TestFields:
    def test_an_entry_is_read_field_by_field(self):
        record = {
            "id": "e1",
            "title": "Ann",
            "tags": ["a", "b"],
            "importance": 7,
            "created_at": "2026-11-22",
            "relations": [{"type": "next", "target": "e2", "strength": 0.5}, {"type": "old", "target": "e3"}],
            "severity": None,
            "turn_index": 4,
        }
        entry, faults = read_entry(record)

        assert faults == []
        assert (entry.id, entry.title, entry.text, entry.severity) == ("e1", "Ann", "", "")
        assert (entry.tags, entry.importance, entry.created_at) == (("a", "b"), 7.0, MIDNIGHT)
        assert entry.relations == (Relation("next", "e2", 0.5), Relation("old", "e3"))
        assert entry.extra == {"turn_index": 4}

    @pytest.mark.parametrize(
        ("field", "value", "rule"),
        [
            ("title", 5, "must be a string"),
            ("text", "\ud800", "must be a string of valid Unicode"),
            ("importance", "high", "must be a finite number"),
            ("importance", float("nan"), "must be a finite number"),
            ("importance", 10**400, "must be a finite number"),
            ("tags", "a b", "must be a list of strings"),
            ("tags", ["a", 1], "must be a list of strings"),
            ("relations", [{"type": "next"}], "must be a list of relations"),
            ("relations", [{"type": "next", "target": "e2", "strength": "strong"}], "list of relations"),
            ("created_at", "soon", "must be an ISO 8601 date or time"),
            ("created_at", 1795305600000, "must be an ISO 8601 date or time"),
        ],
    )
    def test_a_faulty_value_is_named_with_its_rule(self, field, value, rule):
        entry, faults = read_entry({"id": "e1", field: value}, "corpus.jsonl", 3)

        assert entry is None
        [fault] = faults
        assert (fault.file, fault.line, fault.field) == ("corpus.jsonl", 3, field)
        assert rule in fault.rule
        assert str(fault).isascii()

    @pytest.mark.parametrize("identifier", ["", "a b", "a\tb", "a\n"])
    def test_an_id_without_letters_or_with_white_space_is_refused(self, identifier):
        _, faults = read_entry({"id": identifier})
        assert [(f.field, "white space" in f.rule) for f in faults] == [("id", True)]


class TestQueries:
    def test_a_query_is_read_with_its_filter(self):
        record = {"id": "q1", "text": "who?", "filter": {"project": "p"}, "asked_at": "2026-11-22"}
        query, faults = read_query(record)

        assert faults == []
        assert (query.id, query.text, query.asked_at, query.split) == ("q1", "who?", MIDNIGHT, "")
        assert query.filters == Filters.of({"project": "p"})

    @pytest.mark.parametrize("scope", [["project"], "project", 3, {"projekt": "p"}, {"project": [["p"]]}])
    def test_a_filter_that_cannot_be_used_is_a_fault(self, scope):
        query, faults = read_query({"id": "q1", "text": "t", "filter": scope}, "queries.jsonl", 2)
        assert query is None
        assert [(f.line, f.field) for f in faults] == [(2, "filter")]


class TestFilters:
    def test_every_problem_is_named(self):
        with pytest.raises(ConfigError) as raised:
            Filters.of({"projekt": "p", "type": None, "severity": True})
        message = str(raised.value)
        assert "'projekt'; did you" in message
        assert "'type' = None" in message
        assert "'severity' = True" in message

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"created_at": {"from": "soon"}}, "'created_at' = 'soon' must be a number or a date"),
            ({"created_at": {"form": 1}}, "unknown test 'form'; did you mean 'from'?"),
            ({"superseded": "no"}, "'superseded' = 'no' must be true or false"),
            ({"tags": [1]}, "'tags' = [1] must be"),
        ],
    )
    def test_what_a_field_cannot_be_asked_is_named(self, asked, message):
        with pytest.raises(ConfigError) as raised:
            Filters.of(asked)
        assert message in str(raised.value)

    def test_scopes_combine(self):
        both = Filters.of({"project": "p"}) & Filters.of({"type": "t", "project": "p"})

        assert both == Filters.of({"project": "p", "type": "t"})
        assert Filters() & both == both & Filters() == both


TAGS = ("auth", "jwt", 'quo"te', "é")
DAYS = (None, 0.0, 10.0, 20.0, 30.0)


def random_entry(rng, number):
    return Entry(
        f"e{number}",
        type=rng.choice(["", "rule", "pattern"]),
        vault=rng.choice(["v1", "v2", ""]),
        tenant=rng.choice(["t1", "t2", ""]),
        tags=tuple(rng.sample(TAGS, rng.randrange(4))),
        importance=rng.choice([None, 1.0, 5.0]),
        created_at=rng.choice(DAYS),
        valid_from=rng.choice(DAYS),
        valid_until=rng.choice(DAYS),
    )


def random_asked(rng):
    asked = {}
    if rng.random() < 0.5:
        asked["type"] = rng.choice(["rule", ["rule", "pattern"], {"none": ["rule"]}, {"none": ["rule", ""]}])
    if rng.random() < 0.5:
        asked["tags"] = rng.choice(
            [
                ["auth"],
                ["auth", "jwt"],
                {"none": ["é"]},
                {"all": ['quo"te'], "none": ["jwt"]},
                {"any": ["é", "jwt"]},
            ]
        )
    if rng.random() < 0.5:
        asked["created_at"] = rng.choice(
            [{"from": 10}, {"before": 20}, {"after": 10, "until": 20}, {"from": "1970-01-01"}, {"none": [10]}]
        )
    return asked


def holds(entry, asked):
    kind, tags, made = asked.get("type"), asked.get("tags"), asked.get("created_at")
    if isinstance(kind, str) and entry.type != kind:
        return False
    if isinstance(kind, list) and entry.type not in kind:
        return False
    if isinstance(kind, dict) and entry.type in kind["none"]:
        return False
    if isinstance(tags, list) and any(tag not in entry.tags for tag in tags):
        return False
    if isinstance(tags, dict):
        if any(tag not in entry.tags for tag in tags.get("all", [])):
            return False
        if any(tag in entry.tags for tag in tags.get("none", [])):
            return False
        if "any" in tags and not any(tag in entry.tags for tag in tags["any"]):
            return False
    at = entry.created_at
    if made == {"none": [10]}:
        return at != 10
    return made is None or (
        at is not None
        and at >= (0 if isinstance(made.get("from"), str) else made.get("from", 0))
        and at < made.get("before", 1e9)
        and at > made.get("after", -1)
        and at <= made.get("until", 1e9)
    )


@pytest.mark.parametrize("seed", range(30))
def test_sql_and_python_admit_the_same_entries(seed):
    rng = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    entries = [random_entry(rng, number) for number in range(60)]
    with Vault(":memory:") as vault:
        vault.upsert(entries)
        for _ in range(10):
            asked = random_asked(rng)
            filters = Filters.of(asked)
            expected = {e.id for e in entries if holds(e, asked)}

            assert {e.id for e in vault.entries(filters)} == expected, asked
            assert {e.id for e in entries if not filters.failed(e)} == expected, asked


def test_a_window_holds_its_first_moment_and_not_its_last():
    # Soleri: valid_until null or > now, valid_from null or <= now (systems/soleri.md, section 3)
    entries = [
        Entry("always"),
        Entry("from-now", valid_from=10.0),
        Entry("until-now", valid_until=10.0),
        Entry("later", valid_from=11.0),
        Entry("inside", valid_from=9.0, valid_until=11.0),
    ]
    with Vault(":memory:") as vault:
        vault.upsert(entries)

        assert {e.id for e in vault.entries(valid_at(10.0))} == {"always", "from-now", "inside"}


def test_a_caller_sees_the_union_of_the_scopes():
    entries = [Entry("mine", vault="v1"), Entry("team", tenant="t1"), Entry("both", vault="v1", tenant="t1")]
    with Vault(":memory:") as vault:
        vault.upsert([*entries, Entry("foreign", vault="v2", tenant="t2"), Entry("nobody")])
        seen = visible_to({"vault": ("v1",), "tenant": ("t1",)})

        assert {e.id for e in vault.seen_by(seen).entries()} == {"mine", "team", "both"}
        for nothing in (visible_to({"vault": ()}), visible_to({})):
            assert list(vault.seen_by(nothing).entries()) == []
            assert all(nothing.failed(entry) for entry in entries)


def test_what_a_caller_may_see_is_no_filter():
    """An entry of another tenant would say that one of the caller's is superseded."""
    claim = Entry("theirs", tenant="b", relations=(Relation("supersedes", "ours"),))
    seen, current = visible_to({"tenant": ("a",)}), Filters.of({"superseded": False})
    with Vault(":memory:") as vault:
        vault.upsert([Entry("ours", tenant="a"), claim])
        asks = [lambda: current & seen, lambda: seen & current, lambda: list(vault.entries(seen))]
        for ask in [*asks, lambda: vault.count(seen), lambda: vault.within(["ours"], seen)]:
            with pytest.raises(ConfigError, match="it to seen_by"):
                ask()
        assert [e.id for e in vault.seen_by(seen).entries(current)] == ["ours"]


def test_only_an_accepted_successor_supersedes():
    # MoltNet: relation supersedes with status accepted; EchoVault: superseded_by
    entries = [
        Entry("named", superseded_by="x"),
        Entry("old"),
        Entry("disputed"),
        Entry("cited"),
        Entry("new", relations=(Relation("supersedes", "old", None, "accepted"),)),
        Entry(
            "draft", relations=(Relation("supersedes", "disputed", None, "proposed"), Relation("cites", "cited"))
        ),
    ]
    with Vault(":memory:") as vault:
        vault.upsert(entries)

        assert {e.id for e in vault.entries(Filters.of({"superseded": True}))} == {"named", "old"}
        assert len(list(vault.entries(Filters.of({"superseded": False})))) == 4


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"tags": {"all": ["a", "b"], "none": ["c"]}, "superseded": False},
        {"created_at": {"from": "2026-01-01", "before": 1.8e9}, "uri": {"prefix": "x://"}},
        {"importance": [1, 2]},
        {"severity": ""},
    ],
)
def test_the_json_form_reads_back(asked):
    filters = Filters.of(asked)
    assert Filters.of(json.loads(json.dumps(filters.to_json()))) == filters


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # Snowball's own sample vocabulary: consistent -> consist, knives -> knive, running -> run
            ("The CONSISTENT knives, and running!", ["consist", "knive", "run"]),
            ("a b C x2 42", ["x2", "42"]),  # words of one letter are left out
            ("Über größe поиск 検索", ["über", "größe", "поиск", "検索"]),
            ("检索引擎", ["检索", "索引", "引擎"]),
            ("云", ["云"]),
            ("v2版本", ["v2", "版本"]),
            ("サーバ", ["サー", "ーバ"]),
            ("백업은", ["백업", "업은"]),
            ("ที่นี่", ["ที่นี่"]),
            ("ดีมาก", ["ดีม", "มา", "าก"]),
            ("कुंजी बदलो", ["कुंजी", "बदलो"]),
            ("காப்பு", ["காப்பு"]),
            ("Straße", ["straße"]),
            ("C++ or C#, F# and .NET", ["c++", "c#", "f#", "net"]),
            ("C++20 abc# asp.net", ["c++", "20", "abc", "asp", "net"]),
        ],
    )
    def test_each_script_is_split_as_its_readers_split_it(self, text, expected):
        """Pairs of letters by hand, as Lucene's CJKAnalyzer makes them; a vowel sign belongs to its consonant."""
        assert terms(text) == expected

    @pytest.mark.parametrize("text", ["Öffnung", "máy chủ", "がギ", "йод", "한글"])
    def test_composed_and_decomposed_letters_are_the_same_word(self, text):
        assert terms(unicodedata.normalize("NFD", text)) == terms(text)

    @pytest.mark.parametrize(("marked", "bare"), [("مُحَمَّد", "محمد"), ("שָׁלוֹם", "שלום"), ("كتـــاب", "كتاب")])
    def test_vowel_points_and_stretched_letters_make_no_other_word(self, marked, bare):
        assert terms(marked) == terms(bare) == [bare]


class TestQueryBuilders:
    def test_words_are_quoted_and_joined_by_or(self):
        assert prefix_or("auth token") == '"auth"* OR "token"*'  # as echovault documents
        assert prefix_or("  ") == words_or("?! - *") == ""
        assert words_or("Rotate the token, rotate!") == '"rotate" OR "token"'
        assert words_or("to be or not") == '"to" OR "be" OR "or" OR "not"'  # there is nothing else
        assert len(STOP_WORDS) == 33  # Lucene's
        assert content(Entry("e", title="T", text="X", impact="I", context="C", category="no")) == "T X I C"

    @given(st.text(alphabet="ab\"'*^:{}()-+ \tNEARORNOT\u00e9\U0001f600"))
    def test_no_text_breaks_the_syntax_of_fts5(self, text):
        db = apsw.Connection(":memory:")
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x); INSERT INTO t VALUES('near or not a b')")
        for build in (prefix_or, words_or):
            if expression := build(text):
                db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).fetchall()


class TestCleanQuery:
    @pytest.mark.parametrize("text", ["", "   ", "\0", "\u3000", "\ud800"])
    def test_an_empty_query_and_half_a_character_are_refused(self, text):
        with pytest.raises(ConfigError, match=r"type at least|'\\ud800' is not"):
            clean_query(text)

    @given(st.text())
    def test_anything_else_keeps_its_length(self, text):
        try:
            cleaned = clean_query(text)
        except ConfigError:
            return
        assert len(cleaned) == len(text)
        assert clean_query("a\0b\nc\x7fd") == "a b c d"


class Spy:
    """Counts letters, and keeps the queries that it embeds."""

    model = "spy"
    recipe = None

    def __init__(self):
        self.queries = []

    def embed(self, texts, kind="entry"):
        self.queries += texts if kind == "query" else []
        return np.array([[text.count(letter) + 1 for letter in "abcdefgh"] for text in texts], dtype=np.float32)

    def warm(self):
        return True


@pytest.fixture
def searcher():
    system = find_system("soleri")
    with Vault(":memory:") as vault:
        vault.upsert([Entry("a", title="token"), Entry("b", title="secret"), Entry("m", text="x", kind="memory")])
        spy = Spy()
        embed_missing(vault, spy, space_of(spy, "text", system.reading.recipe))
        yield Searcher(vault, system.config(), spy, clock=lambda: 0.0)


def test_the_text_is_cleaned_once_a_search_whoever_reads_it(searcher, monkeypatch):
    """Soleri reads it four times: fts, memories, tfidf, and the check for an empty one."""
    seen = []

    def counted(text):
        seen.append(text)
        return door.clean_query(text)

    monkeypatch.setattr(live_search, "clean_query", counted)
    monkeypatch.setattr(Query, "keywords", property(lambda query: query.matched))
    searcher.search("token\x07")

    assert seen == ["token\x07"]


def test_what_is_embedded_is_the_text_as_asked_and_what_is_matched_may_be_another(searcher):
    hits = searcher.search(Query("credential\x07", matched="token")).hits
    signals = {hit.entry.id: hit.signals["tfidf"] for hit in hits}

    assert searcher._sources.embedders[0].queries == ["credential\x07"]
    assert signals["a"] == 1.0
    assert signals["b"] == 0.0


@pytest.mark.parametrize("query", [Query(" \x00"), Query("fine", matched=" ")])
def test_an_empty_text_is_refused(searcher, query):
    with pytest.raises(ConfigError, match="is empty"):
        searcher.search(query)
