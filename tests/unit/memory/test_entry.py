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
from hypothesis import given, strategies as st
from shared import beside, tabled, vault_with

from steelyard import Entry, Filters, Query, Searcher, find_system
from steelyard.base.errors import ConfigError
from steelyard.base.fields import format_time, parse_time
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.live import search as live_search
from steelyard.memory.entry import Relation, read_entry
from steelyard.memory.query import clean_query, valid_at, visible_to
from steelyard.memory.text import content, terms
from steelyard.memory.words import STOP_WORDS
from steelyard.retrievers.kinds import words_or
from steelyard.systems.echovault import prefix_or
from steelyard_eval.datasets.corpus_and_queries import read_query

# date -u -d @1795305600  ->  2026-11-22T00:00:00Z
MIDNIGHT = 1795305600.0
DATA = beside(__file__)


@pytest.fixture
def far_east(monkeypatch):
    """Put the machine's clock nine hours ahead of UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


class TestTimes:
    @tabled
    def test_a_time_without_zone_is_utc_wherever_the_machine_stands(self, written, seconds, far_east):
        assert parse_time(written) == seconds

    @tabled
    def test_what_is_not_a_time_is_refused(self, written):
        with pytest.raises((ValueError, OverflowError), match=r"\w"):
            parse_time(written)

    @given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))
    def test_whole_seconds_survive_writing_and_reading(self, moment):
        seconds = float(int(moment.replace(tzinfo=UTC).timestamp()))
        assert parse_time(format_time(seconds)) == seconds


class TestFields:
    def test_an_entry_is_read_field_by_field(self):
        entry, faults = read_entry(*DATA["RECORD"])
        assert faults == []
        assert (entry.id, entry.title, entry.text, entry.severity) == ("e1", "Ann", "", "")
        assert (entry.tags, entry.importance, entry.created_at) == (("a", "b"), 7.0, MIDNIGHT)
        assert entry.relations == (Relation("next", "e2", 0.5), Relation("old", "e3"))
        assert entry.extra == {"turn_index": 4}

    @tabled
    def test_a_faulty_value_is_named_with_its_rule(self, field, value, rule):
        entry, [fault] = read_entry({"id": "e1", field: value}, "corpus.jsonl", 3)
        assert entry is None
        assert (fault.file, fault.line, fault.field) == ("corpus.jsonl", 3, field)
        assert (rule in fault.rule, str(fault).isascii()) == (True, True)


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
        named = ["'projekt'; did you", "'type' = None", "'severity' = True"]
        assert [part for part in named if part not in str(raised.value)] == []

    @tabled
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


CHOICES = DATA["CHOICES"]  # what a test of a field may be, by its name


def holds(entry, asked):
    kind, tags, made, at = asked.get("type"), asked.get("tags", {}), asked.get("created_at"), entry.created_at
    kinds = [kind] if isinstance(kind, str) else kind
    if isinstance(kinds, list) and entry.type not in kinds:
        return False
    if isinstance(kinds, dict) and entry.type in kinds["none"]:
        return False
    tags = {"all": tags} if isinstance(tags, list) else tags
    if any(tag not in entry.tags for tag in tags.get("all", [])):
        return False
    if any(tag in entry.tags for tag in tags.get("none", [])):
        return False
    if "any" in tags and not any(tag in entry.tags for tag in tags["any"]):
        return False
    if made is None or made == {"none": [10]}:
        return made is None or at != 10
    first = 0 if isinstance(made.get("from"), str) else made.get("from", 0)
    last = made.get("until", 1e9)
    return at is not None and first <= at < made.get("before", 1e9) and made.get("after", -1) < at <= last


@pytest.mark.parametrize("seed", range(30))
def test_sql_and_python_admit_the_same_entries(seed):
    rng = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    entries = [random_entry(rng, number) for number in range(60)]
    vault = vault_with(*entries)
    for _ in range(10):
        asked = {field: rng.choice(choices) for field, choices in CHOICES.items() if rng.random() < 0.5}
        filters = Filters.of(asked)
        expected = {e.id for e in entries if holds(e, asked)}
        assert {e.id for e in vault.entries(filters)} == expected, asked
        assert {e.id for e in entries if not filters.failed(e)} == expected, asked


def test_a_window_holds_its_first_moment_and_not_its_last():
    # Soleri: valid_until null or > now, valid_from null or <= now (systems/soleri.md, section 3)
    ends = {"always": (None, None), "from-now": (10.0, None), "until-now": (None, 10.0), "later": (11.0, None)}
    windows = {**ends, "inside": (9.0, 11.0)}
    vault = vault_with(*(Entry(name, valid_from=a, valid_until=b) for name, (a, b) in windows.items()))
    assert {e.id for e in vault.entries(valid_at(10.0))} == {"always", "from-now", "inside"}


def test_a_caller_sees_the_union_of_the_scopes():
    entries = [Entry("mine", vault="v1"), Entry("team", tenant="t1"), Entry("both", vault="v1", tenant="t1")]
    vault = vault_with(*entries, Entry("foreign", vault="v2", tenant="t2"), Entry("nobody"))
    seen = visible_to({"vault": ("v1",), "tenant": ("t1",)})
    assert {e.id for e in vault.seen_by(seen).entries()} == {"mine", "team", "both"}
    for nothing in (visible_to({"vault": ()}), visible_to({})):
        assert list(vault.seen_by(nothing).entries()) == []
        assert all(nothing.failed(entry) for entry in entries)


def test_what_a_caller_may_see_is_no_filter():
    """An entry of another tenant would say that one of the caller's is superseded."""
    seen, current = visible_to({"tenant": ("a",)}), Filters.of({"superseded": False})
    claim = Entry("theirs", tenant="b", relations=(Relation("supersedes", "ours"),))
    vault = vault_with(Entry("ours", tenant="a"), claim)
    asks = [lambda: current & seen, lambda: seen & current, lambda: list(vault.entries(seen))]
    for ask in [*asks, lambda: vault.count(seen), lambda: vault.within(["ours"], seen)]:
        with pytest.raises(ConfigError, match="it to seen_by"):
            ask()
    assert [e.id for e in vault.seen_by(seen).entries(current)] == ["ours"]


def test_only_an_accepted_successor_supersedes():
    # MoltNet: relation supersedes with status accepted; EchoVault: superseded_by
    draft = Relation("supersedes", "disputed", None, "proposed"), Relation("cites", "cited")
    vault = vault_with(
        *map(Entry, ("old", "disputed", "cited")),
        Entry("named", superseded_by="x"),
        Entry("new", relations=(Relation("supersedes", "old", None, "accepted"),)),
        Entry("draft", relations=draft),
    )
    assert {e.id for e in vault.entries(Filters.of({"superseded": True}))} == {"named", "old"}
    assert len(list(vault.entries(Filters.of({"superseded": False})))) == 4


@tabled
def test_the_json_form_reads_back(asked):
    filters = Filters.of(asked)
    assert Filters.of(json.loads(json.dumps(filters.to_json()))) == filters


class TestTerms:
    @tabled
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

    model, recipe = "spy", None

    def __init__(self):
        self.queries = []

    def embed(self, texts, kind="entry"):
        self.queries += texts if kind == "query" else []
        return np.array([[text.count(letter) + 1 for letter in "abcdefgh"] for text in texts], dtype=np.float32)

    def warm(self):
        return True


@pytest.fixture
def searcher():
    system, spy = find_system("soleri"), Spy()
    vault = vault_with(Entry("a", title="token"), Entry("b", title="secret"), Entry("m", text="x", kind="memory"))
    embed_missing(vault, spy, space_of(spy, "text", system.reading.recipe))
    return Searcher(vault, system.config(), spy, clock=lambda: 0.0)


def test_the_text_is_cleaned_once_a_search_whoever_reads_it(searcher, monkeypatch):
    """Soleri reads it four times: fts, memories, tfidf, and the check for an empty one."""
    seen = []
    monkeypatch.setattr(live_search, "clean_query", lambda text: seen.append(text) or clean_query(text))
    monkeypatch.setattr(Query, "keywords", property(lambda query: query.matched))
    searcher.search("token\x07")
    assert seen == ["token\x07"]


def test_what_is_embedded_is_the_text_as_asked_and_what_is_matched_may_be_another(searcher):
    hits = searcher.search(Query("credential\x07", matched="token")).hits
    signals = {hit.entry.id: hit.signals["tfidf"] for hit in hits}
    assert searcher._sources.embedders[0].queries == ["credential\x07"]
    assert (signals["a"], signals["b"]) == (1.0, 0.0)


@pytest.mark.parametrize("query", [Query(" \x00"), Query("fine", matched=" ")])
def test_an_empty_text_is_refused(searcher, query):
    with pytest.raises(ConfigError, match="is empty"):
        searcher.search(query)
