"""What a vault keeps of the words of its entries: the same lists, bit for bit, as words that are counted anew."""

import apsw
import numpy as np
import pytest

from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query, valid_at
from steelyard.retrievers.keywords import Bm25Retriever, tfidf
from steelyard.retrievers.tsearch import TsRetriever, analysis
from steelyard.stores.sqlite import Vault, words
from steelyard.systems import analyses, find_system

BM25, SOLERI, JS, MOLTNET = map(find_system, ("bm25", "soleri", "spec_kit:js", "moltnet"))
SEARCH = MOLTNET.reading.index
SCOPES = [EVERYTHING, Filters.of({"project": "p0"}), Filters.of({"tags": ["x"]}), valid_at(50.0)]
ASKED = [
    *("token", "tokens rotate cache", "graph -cache", '"retry budget" or jwt', "the of", "cache cache"),
    "-token",
]
VOCABULARY = [
    *("token", "tokens", "rotate", "cache", "graph", "retry", "budget", "jwt", "the", "of", "café", "v1.2.3")
]


@pytest.fixture
def always(monkeypatch):
    """Words are stored from the first entry on, and stored anew when three have changed."""
    monkeypatch.setattr(words, "WORTH_STORING", 0)
    monkeypatch.setattr(words, "BLOCK", 7)
    monkeypatch.setattr(words, "CHANGES", 3)
    monkeypatch.setattr(words, "CHANGES_SHARE", 0.2)


def entries(rng, names):
    for name in names:
        text = " ".join(rng.choice(VOCABULARY, size=int(rng.integers(0, 14))))
        until = float(rng.integers(0, 100)) if rng.integers(0, 2) else None
        tags = ("x",) * int(rng.integers(0, 2))
        yield Entry(name, name[:2], text, project=f"p{rng.integers(0, 3)}", tags=tags, valid_until=until)


def found(vault):
    """Everything that the words of a vault decide."""
    retrievers = [
        Bm25Retriever(vault),
        Bm25Retriever(vault, 0.4, 0.1, JS.reading.bm25_words),
        TsRetriever(vault, SEARCH),
    ]
    score = tfidf(vault, SOLERI.reading.words, lambda query: query.filters)
    ids = [entry.id for entry in vault.entries()]
    for scope in SCOPES:
        for text in ASKED:
            query = Query(text, filters=scope)
            yield [retriever.retrieve(query, depth) for retriever in retrievers for depth in (1, 3, None)]
            yield score(query, ids).tobytes()


def anew(vault):
    """The same of a vault in memory that has just been filled."""
    with Vault(":memory:") as fresh:
        fresh.upsert(vault.entries())
        yield from found(fresh)


@pytest.mark.parametrize("seed", range(2))
def test_random_writes_leave_the_lists_of_a_vault_that_is_counted_anew(tmp_path, always, seed):
    rng = np.random.default_rng(seed)
    names = [f"e{at:02d}" for at in rng.permutation(40)]
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert(entries(rng, names[:30]))
        for at in range(6):
            writer, reader = (first, second) if at % 2 else (second, first)
            writer.ensure_words(analyses([BM25, SOLERI, JS, MOLTNET]))
            assert list(found(reader)) == list(anew(reader))
            some = [str(name) for name in rng.choice(names, size=int(rng.integers(1, 6)), replace=False)]
            writer.delete(some[:2])
            writer.upsert(entries(rng, some[1:]))
        assert [lacking for _, lacking in first.word_indexes()] < [9] * 4
        assert len(first.word_indexes()) == 4


def test_a_new_process_reads_what_is_stored(tmp_path, always, monkeypatch):
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert(entries(np.random.default_rng(0), [f"e{at}" for at in range(30)]))
        vault.ensure_words(analyses([BM25]))
        before = Bm25Retriever(vault).retrieve(Query("token cache"), 9)
        vault.upsert([Entry("new", text="token token cache")])
    with Vault(tmp_path / "vault") as vault:
        texts, read = vault._texts, []
        monkeypatch.setattr(vault, "_texts", lambda own, rows: read.append(len(rows)) or texts(own, rows))
        after = Bm25Retriever(vault).retrieve(Query("token cache"), 9)
    assert "new" in {hit.id for hit in after} - {hit.id for hit in before}
    assert read == [1]


@pytest.mark.parametrize("often", [255, 256, 400])
def test_a_word_is_counted_as_often_as_it_occurs_when_it_is_stored(tmp_path, always, often):
    """Small counts take a byte each in the file."""
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert([Entry("a", text="token " * often), Entry("b", text="cache")])
        vault.ensure_words(analyses([BM25]))
        counted = vault.counted(BM25.reading.bm25_words.analysis, EVERYTHING)
        assert len(vault.word_indexes()) == 1
        assert counted.posting("token").counts.tolist() == [often]


def test_a_search_goes_on_while_another_process_writes(tmp_path, always):
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert([Entry("a", text="token")])
        with first.transaction():
            first.upsert([Entry("b", text="token")])
            assert [hit.id for hit in Bm25Retriever(second).retrieve(Query("token"), 9)] == ["a"]
            assert [hit.id for hit in Bm25Retriever(first).retrieve(Query("token"), 9)] == ["a", "b"]
        assert [hit.id for hit in Bm25Retriever(second).retrieve(Query("token"), 9)] == ["a", "b"]


def test_words_that_are_counted_anew_meanwhile_are_an_error_and_never_a_shorter_list(tmp_path, always):
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert(entries(np.random.default_rng(0), [f"e{at}" for at in range(9)]))
        first.ensure_words(analyses([BM25]))
        counted = first.counted(BM25.reading.bm25_words.analysis, EVERYTHING)
        second.drop_words()
        with pytest.raises(VaultError, match="counted anew during"):
            counted.posting("token")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE postings SET entries = substr(entries, 1, 5)",
        "UPDATE postings SET entries = x'ffffff7f', counts = x'01'",
        "UPDATE postings SET entries = x'0000000000000000', counts = x'0101'",
        "UPDATE postings SET counts = zeroblob(length(counts))",
        "UPDATE postings SET positions = x'0102'",
        "UPDATE word_indexes SET entries = x'00'",
        "UPDATE word_indexes SET entries = zeroblob(length(entries))",
        "UPDATE word_indexes SET lengths = CAST(x'ffffffff' || substr(lengths, 5) AS BLOB)",
    ],
)
def test_damaged_postings_are_refused(tmp_path, always, change):
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert(Entry(f"e{at}", text="token cache") for at in range(9))
        vault.ensure_words([analysis(SEARCH)])
    with apsw.Connection(str(tmp_path / "vault")) as db:
        db.execute(change)
    db.close()
    with Vault(tmp_path / "vault") as vault, pytest.raises(VaultError, match="is damaged"):
        TsRetriever(vault, SEARCH).retrieve(Query('"token cache"'), 9)


def test_the_fields_that_are_read_are_all_that_the_texts_need():
    """The functions give the same text of an entry of which nothing else was read."""
    full = Entry(
        "id", "t", "x", why="w", impact="i", context="c", details="d", uri="u", tags=("a", "b"), category="g"
    )
    for system in (BM25, SOLERI, JS, MOLTNET):
        for own in analyses([system]):
            part = Entry("id", **{name: getattr(full, name) for name in own.fields if name != "id"})
            assert own.read(part) == own.read(full)
    assert len(analyses([BM25, SOLERI, JS, MOLTNET])) == 4
