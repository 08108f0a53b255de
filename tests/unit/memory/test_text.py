"""Words, stop words, stems, and the expressions that FTS5 is asked."""

import unicodedata

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError, shown
from steelyard.memory.entry import Entry
from steelyard.memory.query import clean_query
from steelyard.memory.text import STOP_WORDS, content, quote, terms
from steelyard.retrievers.kinds import words_or
from steelyard.systems.echovault import prefix_or


class TestTerms:
    def test_words_are_lowered_stemmed_and_stripped_of_stop_words(self):
        """Snowball's own sample vocabulary: consistent -> consist, knives -> knive, running -> run."""
        assert terms("The CONSISTENT knives, and running!") == ["consist", "knive", "run"]

    def test_words_of_one_letter_are_left_out(self):
        assert terms("a b C x2 42") == ["x2", "42"]

    def test_accents_and_other_scripts_stay(self):
        assert terms("Über größe поиск 検索") == ["über", "größe", "поиск", "検索"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
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

    def test_the_stop_words_are_lucenes_33(self):
        assert len(STOP_WORDS) == 33
        assert {"the", "such", "will"} <= STOP_WORDS
        assert "from" not in STOP_WORDS

    def test_content_joins_what_an_entry_says(self):
        entry = Entry(
            "e", title="T", text="X", why="", impact="I", context="C", category="not this", tags=("nor",)
        )
        assert content(entry) == "T X I C"


class TestQueryBuilders:
    def test_prefixes_joined_by_or_as_echovault_documents(self):
        assert prefix_or("auth token") == '"auth"* OR "token"*'
        assert prefix_or("  ") == ""

    def test_words_joined_by_or_each_once(self):
        assert words_or("Rotate the token, rotate!") == '"rotate" OR "token"'

    def test_stop_words_stand_when_there_is_nothing_else(self):
        assert words_or("to be or not") == '"to" OR "be" OR "or" OR "not"'

    def test_no_words_at_all_ask_for_nothing(self):
        assert words_or("?! - *") == ""

    @given(st.text(alphabet="ab\"'*^:{}()-+ \tNEARORNOT\u00e9\U0001f600"))
    def test_no_text_breaks_the_syntax_of_fts5(self, text):
        db = apsw.Connection(":memory:")
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x); INSERT INTO t VALUES('near or not a b')")
        for build in (prefix_or, words_or):
            if expression := build(text):
                db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).fetchall()

    def test_operators_inside_quotes_are_text(self):
        db = apsw.Connection(":memory:")
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x); INSERT INTO t VALUES('alpha'), ('say \"NOT\"')")
        [(found,)] = db.execute("SELECT x FROM t WHERE t MATCH ?", (quote('"NOT"'),)).fetchall()
        assert found == 'say "NOT"'


class TestCleanQuery:
    def test_control_characters_become_blanks(self):
        assert clean_query("a\0b\nc\x7fd") == "a b c d"

    @pytest.mark.parametrize("text", ["", "   ", "\0", "\n\t", "\u3000"])
    def test_an_empty_query_is_refused(self, text):
        with pytest.raises(ConfigError, match="type at least"):
            clean_query(text)

    def test_half_a_character_is_refused(self):
        with pytest.raises(ConfigError, match=r"'\\ud800' is not"):
            clean_query("\ud800")

    @given(st.text())
    def test_anything_else_keeps_its_length(self, text):
        try:
            cleaned = clean_query(text)
        except ConfigError:
            return
        assert len(cleaned) == len(text)


def test_a_value_is_shown_in_eighty_characters():
    """Two of them are the quotes."""
    assert shown("x" * 78) == f"'{'x' * 78}'"
    assert shown("x" * 79) == f"'{'x' * 76}..."
