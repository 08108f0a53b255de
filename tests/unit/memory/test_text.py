"""Words and the expressions that FTS5 is asked; the door that a query's text passes through once."""

import unicodedata

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.live import search as live_search
from steelyard.live.search import Searcher
from steelyard.memory import query as door
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query, clean_query
from steelyard.memory.text import STOP_WORDS, content, terms
from steelyard.retrievers.kinds import words_or
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.echovault import prefix_or


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
