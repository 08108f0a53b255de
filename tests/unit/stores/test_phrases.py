"""Keywords searched in memory are found as FTS5 finds them: the same ids and the same float64 bits."""

from contextlib import nullcontext

import apsw
import numpy as np
import pytest
from shared import beside, tabled

from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite import Vault, keywords
from steelyard.stores.sqlite.words import TermSegment, _lengths

INDEXES = [
    KeywordIndex("one", ("title", "text", "tags")),
    KeywordIndex("two", ("text", "title"), "unicode61 remove_diacritics 0"),
    KeywordIndex("three", ("text",), "trigram"),
]
WORDS = beside(__file__)["WORDS"]
SCOPES = [EVERYTHING, Filters.of({"project": "p0"}), Filters.of({"project": "none"})]


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """The same file twice: answered from memory from the first search on, and by FTS5."""
    monkeypatch.setattr(keywords, "OFTEN", -1)
    with Vault(tmp_path / "vault", create=True) as fast, Vault(tmp_path / "vault") as plain:
        plain._from_memory = lambda *_: None
        yield fast, plain


def entries(rng, names):
    for name in names:
        title, text = (" ".join(rng.choice(WORDS, size=int(rng.integers(0, 9)))) for _ in range(2))
        yield Entry(name, title, text, tags=(title[:7],), project=f"p{rng.integers(0, 2)}")


def expression(rng):
    parts = []
    for _ in range(int(rng.integers(1, 5))):
        words = " ".join(rng.choice(WORDS, size=int(rng.integers(1, 4))))
        quoted = '"' + words.replace('"', '""') + '"'
        bare = str(rng.choice(["token", "cach", "日本", "Cache", "to", "absent"]))
        part = bare if rng.integers(0, 3) == 0 else quoted
        parts.append(part + str(rng.choice(["", "", "*", " *"])))
    return " OR ".join(parts)


def same(fast, plain, rng, match):
    found = 0
    for index in INDEXES:
        weights = rng.choice([0.0, 0.1, 1.0, 3.0, 0.7], size=len(index.fields)).tolist()
        for scope in SCOPES:
            depth = int(rng.choice([-1, 1, 2, 5, 50]))
            here = fast.keyword(index, match, weights, scope, depth)
            assert here == plain.keyword(index, match, weights, scope, depth), (match, weights, depth)
            found += len(here)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_random_vaults_give_the_same_bits_with_and_without_fts5(pair, seed):
    fast, plain = pair
    rng = np.random.default_rng(seed)
    names = [f"e{at:02d}" for at in rng.permutation(60)]
    fast.upsert(entries(rng, names[:40]))
    found = 0
    for at in range(5):
        found += sum(same(fast, plain, rng, expression(rng)) for _ in range(12))
        some = [str(name) for name in rng.choice(names, size=6, replace=False)]
        (fast, plain)[at % 2].delete(some[:2])
        (plain, fast)[at % 2].upsert(entries(rng, some[1:]))
    assert found > 1000


@tabled
def test_every_expression_is_answered_as_fts5_answers_it(pair, match):
    fast, plain = pair
    rng = np.random.default_rng(0)
    fast.upsert(entries(rng, [f"e{at:02d}" for at in range(30)]))
    same(fast, plain, rng, match)


def test_a_token_that_fts5_cuts_is_left_to_it(pair):
    fast, plain = pair
    fast.upsert([Entry("a", text="y" * 40_000), Entry("b", text="token")])
    for match in ('"' + "y" * 40_000 + '"', "token"):
        for index in INDEXES[:2]:
            asked = (index, match, [1.0] * len(index.fields), EVERYTHING, 9)
            assert fast.keyword(*asked) == plain.keyword(*asked)


def test_only_the_words_that_are_asked_for_are_read(pair, monkeypatch):
    fast, _ = pair
    fast.upsert([Entry("a", text="token tokens cache")])
    read, words = [], TermSegment._instances
    monkeypatch.setattr(TermSegment, "_instances", lambda own, *asked: read.append(asked) or words(own, *asked))
    monkeypatch.setattr(fast, "_texts", lambda *_: pytest.fail("the texts were read"))
    for _ in range(2):
        assert len(fast.keyword(INDEXES[1], "token OR absent", [1.0] * 2, EVERYTHING, 9)) == 1
    assert read == [("term = ?", "token"), ("term = ?", "absent")]
    assert len(fast.keyword(INDEXES[1], "toke*", [1.0] * 2, EVERYTHING, 9)) == 1
    assert read[2:] == [("term >= ?", "toke")]  # all words that begin so in one statement


@tabled
def test_numbers_of_tokens_are_read_and_other_sizes_are_refused(blobs, sums):
    """Varints of SQLite's file format: seven bits a byte, the highest first."""
    with pytest.raises(ValueError, match="number") if sums is None else nullcontext():
        assert _lengths([bytes.fromhex(blob) for blob in blobs], 2).tolist() == sums


def damage(path, sql, *values):
    """Change a vault as somebody else would, without its guard."""
    db = apsw.Connection(str(path))
    db.execute(sql, values)
    db.close()


def test_a_size_that_is_a_large_number_takes_no_memory(pair, tmp_path):
    """bytes(n) would be n zeros; FTS5 reads the size of rows that match alone, and this one does not."""
    fast, _ = pair
    fast.upsert([Entry("a", text="token"), Entry("b", text="other")])
    fast.ensure_index(INDEXES[1])
    damage(tmp_path / "vault", "UPDATE fts_two_docsize SET sz = ? WHERE id = 2", 10**13)
    with pytest.raises(VaultError, match="damaged"):
        fast.keyword(INDEXES[1], "token", [1.0] * 2, EVERYTHING, 9)


def test_a_position_beyond_the_last_field_is_damage(pair, tmp_path):
    """The list of a word is rowid 1, 3 bytes, of column 1 the offset 0 (+ 2); it becomes 2**25 (fts5_index.c)."""
    fast, _ = pair
    fast.upsert([Entry("a", text="filler", title="alpha"), Entry("b", text="filler", title="alpha")])
    fast.ensure_index(INDEXES[1])
    path, where = tmp_path / "vault", "WHERE id = 137438953473"
    with apsw.Connection(str(path)) as db:
        block = db.execute(f"SELECT block FROM fts_two_data {where}").fetchone()[0]
    old = bytes.fromhex("616C706861 0106010102 0106010102")
    new = bytes.fromhex("616C706861 01100101 8090808002 03")
    assert (block.count(old), len(old)) == (1, len(new))
    damage(path, f"UPDATE fts_two_data SET block = ? {where}", block.replace(old, new))
    with pytest.raises(VaultError, match="contradicts itself"):
        fast.keyword(INDEXES[1], "alpha", [1.0] * 2, EVERYTHING, 9)


TIES = 32
INDEX = KeywordIndex("content", ("title", "text"))


@pytest.fixture(scope="module")
def vault():
    """Three good matches, then more equal ones than the cut takes; ids against insertion order."""
    size = 2 * TIES + 20
    with Vault(":memory:") as made:
        made.upsert(Entry(f"tie{at:03d}", text="token cache", project="p") for at in reversed(range(size)))
        made.upsert(Entry(f"best{at}", text="token token", project="p") for at in (2, 0, 1))
        made.upsert(Entry(f"other{at:03d}", text="graph retry", project="p") for at in range(2 * size))
        yield made


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 20, TIES, TIES + 3, 2 * TIES + 22, 2 * TIES + 23, 500, -1])
@pytest.mark.parametrize("filters", [EVERYTHING, Filters.of({"project": "p"})])
def test_the_cut_is_by_score_and_then_by_id(vault, depth, filters):
    found = vault.keyword(INDEX, '"token"', [1.0, 1.0], filters, depth)
    expected = [f"best{at}" for at in range(3)] + [f"tie{at:03d}" for at in range(2 * TIES + 20)]
    assert [one.id for one in found] == (expected if depth < 0 else expected[:depth])
    assert [one.position for one in found] == list(range(1, len(found) + 1))
