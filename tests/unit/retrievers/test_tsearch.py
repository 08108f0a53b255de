"""Full-text search by PostgreSQL's rules.

What a test expects was printed by PostgreSQL 15.20 (ts_parse, to_tsvector, websearch_to_tsquery, ts_rank),
stands in the recording of MoltNet, or is derived in a comment; generated texts are compared with a server.
"""

import math
import random

import pytest
from moltnet_text import printed
from shared import beside

from steelyard.retrievers.english import STOP_WORDS, _between_markup, stem, tokens_of, tsvector
from steelyard.retrievers.tsearch import Not, Phrase, best, flat, has_negation, ranker, websearch
from steelyard.stores.postings import ScopedPostings

SAID = beside(__file__, "tsearch.json")  # Texts and what PostgreSQL says of them


def words(text):
    pieces = ((piece, *each) for piece in _between_markup(text) for each in enumerate(piece.split()))
    chunks = ((chunk, at == 0 and not piece[0].isspace()) for piece, at, chunk in pieces)
    return [token for chunk in chunks for _, token in tokens_of(*chunk)]


def counted(texts):
    return ScopedPostings.of((id_, flat(tsvector(text))) for id_, text in texts)


def asked(text):
    return printed(websearch(text))


class TestLexer:
    @pytest.mark.parametrize(("text", "expected"), SAID["tokens"])
    def test_texts_fall_into_postgresqls_tokens(self, text, expected):
        assert words(text) == expected

    def test_a_relative_path_is_one_only_where_no_blank_is_before_it(self):
        assert words("./a") == ["./a"]
        assert words("x ./a") == ["x", "/a"]

    def test_a_no_break_space_ends_a_word(self):
        assert words("a\u00a0b") == ["a", "b"]


@pytest.mark.parametrize(("word", "expected"), SAID["stems"].items())
def test_stems_are_those_of_postgresql_15(word, expected):
    assert stem(word) == expected


class TestTsVector:
    @pytest.mark.parametrize(
        ("text", "vector"),
        [
            *SAID["vectors"],  # stop words take a position; words with digits or dots are not stemmed
            (" ".join(sorted(STOP_WORDS)), {}),
            ("cache " * 300, {"cach": tuple(range(1, 256))}),  # 255 positions at most, the largest 16383
            ("x" * 2_048 + " foo", {"foo": (1,)}),  # a word of more than 2047 bytes takes no position
            ("x" * 993 + "running", {"x" * 993 + "run": (1,)}),  # of more than 1000 bytes it keeps its ending
            ("x" * 994 + "running", {"x" * 994 + "running": (1,)}),
        ],
    )
    def test_lexemes_and_their_positions(self, text, vector):
        assert tsvector(text) == {word: tuple(places) for word, places in vector.items()}

    def test_positions_and_words_end_where_those_of_postgresql_do(self):
        assert len(STOP_WORDS) == 127
        vector = tsvector("foo " + "x " * 16_382 + "foo foo bar")
        assert (vector["foo"], vector["bar"]) == ((1, 16_383), (16_383,))
        assert tsvector("x" * 2_047 + " foo")["foo"] == (2,)


class TestWebsearch:
    @pytest.mark.parametrize(("text", "expected"), SAID["queries"])
    def test_queries_print_as_postgresql_prints_them(self, text, expected):
        assert asked(text) == expected

    @pytest.mark.parametrize("text", SAID["nothing"])
    def test_stop_words_and_signs_alone_are_no_query(self, text):
        assert websearch(text) is None

    def test_a_negation_is_detected_as_moltnet_does_it(self):
        assert has_negation(websearch("jwt -zzzznothing"))
        assert not has_negation(websearch("cache -the"))
        assert has_negation(websearch('"x.com/a!b"'))  # its print holds a "!"

    def test_an_or_with_nothing_behind_it_is_a_word(self):
        assert asked("foo or\u0301") == "'foo' & 'or\u0301'"
        assert asked("foo or\u0301 bar") == "'foo' | 'bar'"


def found(query, text):
    return bool(best(counted([("a", text)]), websearch(query)))


@pytest.mark.parametrize(("query", "matched", "left"), SAID["matched"])
def test_what_a_query_matches(query, matched, left):
    """Not by prefix, and accents stay."""
    assert [found(query, text) for text in (*matched, *left)] == [True] * len(matched) + [False] * len(left)


ONCE = 0.1 / 1.64493406685  # 0.0607927
BESIDE = 0.1 * 0.9910322  # sqrt(1 / (1.005 + 0.05 exp(1/1.5 - 2))) = sqrt(1 / 1.0181799)


def near(value):
    return pytest.approx(value, rel=1e-6, abs=0)


class TestRank:
    def ranked(self, query, text):
        return ranker(websearch(query))(tsvector(text))

    @pytest.mark.parametrize(
        ("query", "text", "rank"),
        [
            ("incident", "an incident", 0.0607927),
            ("cache", "cache cache cache", ONCE * (1 + 1 / 4 + 1 / 9)),
            ("cache or redis or etcd", "redis cache", 2 * ONCE / 3),  # or divides by all its lexemes
            ("cache caches", "cache", ONCE),  # the same word twice is one lexeme
            ("cache or caches", "cache", ONCE),
            ("event loop", "event loop", BESIDE),
            ('"event loop"', "event loop", BESIDE),
            ("event loop", "loop event", BESIDE),
            ("event loop", "event x y loop", 0.1 / 1.055**0.5),  # exp(3/1.5 - 2) = 1, so g = 1 / 1.055
            ("event loop", "event loop event", 1 - (1 - BESIDE) ** 2),  # pairs at 1-2 and 2-3, as chances
            ("event loop", "event " + "x " * 100 + "loop", 1e-16),
            ("event loop", "event " + "x " * 99 + "loop", 0.1 / math.sqrt(1.005 + 0.05 * math.exp(100 / 1.5 - 2))),
            ("deploy -staging", "deploy deploy", 1e-20),
            ("-staging", "deploy", 0),
            ("event loop", "x " * 16_382 + "event loop", 1e-20),  # at the last position they are no pair
        ],
    )
    def test_ranks(self, query, text, rank):
        assert self.ranked(query, text) == near(rank)

    def test_pairs_are_those_of_all_places_of_different_words(self):
        places = [(n, n % 3) for n in range(15)]  # three words in turn
        pairs = [m - n for n, word in places for m, other in places if m > n and word != other]
        missed = math.prod(1 - 0.1 / math.sqrt(1.005 + 0.05 * math.exp(d / 1.5 - 2)) for d in pairs)
        assert self.ranked("event loop server", "event loop server " * 5) == near(1 - missed)

    def test_many_pairs_end_where_single_precision_no_longer_tells_them_apart(self):
        assert self.ranked("event loop", "event loop " * 200) == 0.9999997019767761


class TestTsIndex:
    WORDS = ("deploy to staging", "deploy deploy", "the event loop", "loop of the event", "the")
    TEXTS = tuple(zip("abcde", WORDS, strict=True))
    INDEX = counted(TEXTS)

    @pytest.mark.parametrize(("query", "ids"), SAID["found"])
    def test_it_finds_what_matches(self, query, ids):
        assert "".join(sorted(id_ for id_, _ in best(self.INDEX, websearch(query)))) == ids

    def test_it_ranks_as_the_text_alone_does(self):
        found = dict(best(self.INDEX, websearch("deploy or loop")))
        assert found == {**dict.fromkeys("acd", near(ONCE / 2)), "b": near(ONCE * (1 + 1 / 4) / 2)}


class TestHostileInput:
    @pytest.mark.parametrize("unit", SAID["hostile"])
    def test_repeated_beginnings_of_tokens_end(self, unit):
        text = unit * 20_000
        assert len(tsvector(text)) <= len(text)
        websearch(text)

    def test_any_number_of_signs_is_one_negation(self):
        assert websearch("-" * 100_001 + "x") == Not(Phrase(("x",)), 100_001)
        assert found("-" * 100_000 + "x", "x")
        assert asked("- " * 3 + "x") == "!!!'x'"

    def test_a_query_of_a_thousand_words_searches(self):
        text = " ".join(f"w{n}" for n in range(1000))
        index = counted([("all", text), ("some", "w1 w2")])
        assert [id_ for id_, _ in best(index, websearch(text))] == ["all"]
        assert [id_ for id_, _ in best(index, websearch(f'"{text}"'))] == ["all"]
        assert len(best(index, websearch(text.replace(" ", " or ")))) == 2

    def test_a_nul_and_a_lone_surrogate_are_dropped(self):
        assert words("a\0b\ud800c") == ["a", "b", "c"]


PIECES = """a b1 1 -1 1.5 é . - _ / @ : ~ < > & ; " ' or OR the foo-bar x.com /y <b> <!-- --> http:// run_s e5 v1.2
running ( ) | ! 2024-01-02 .py ../ , + \u0301 — 日本""".split()  # noqa: SIM905 -- pieces read better


def test_generated_texts_come_out_as_on_a_server(postgres_server):
    chance = random.Random(5)  # noqa: S311 -- texts, no secrets
    texts = ["".join(chance.choices((*PIECES, " ", " "), k=chance.randint(1, 14))) for _ in range(2_000)]
    words = "SELECT lexeme, positions FROM unnest(to_tsvector('english', %s))"
    with pytest.importorskip("psycopg").connect(postgres_server) as server:
        if server.info.server_version >= 180_000:
            pytest.skip("PostgreSQL 18 stems by Snowball 3; ours are the rules of 15")
        server.execute("SET client_min_messages = error")
        for text, query in zip(texts[::2], texts[1::2], strict=True):
            assert tsvector(text) == {word: tuple(at) for word, at in server.execute(words, (text,)).fetchall()}
            (said,) = server.execute("SELECT websearch_to_tsquery('english', %s)::text", (query,)).fetchone()
            assert asked(query) == said
