"""What a vault keeps of words, and between calls: the same lists, bit for bit, as those that are counted anew."""

import time
from concurrent.futures import ThreadPoolExecutor

import apsw
import numpy as np
import pytest
from shared import STARTER, beside, tabled, vault_with

from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query, valid_at
from steelyard.retrievers.keywords import Bm25Retriever, tfidf
from steelyard.retrievers.tsearch import TsRetriever, analysis
from steelyard.stores.base import RevisionCache
from steelyard.stores.sqlite import Vault, words
from steelyard.systems import analyses, find_system
from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset, reindex_vault

BM25, SOLERI, JS, MOLTNET = map(find_system, ("bm25", "soleri", "spec_kit:js", "moltnet"))
SEARCH = MOLTNET.reading.index
SCOPES = [EVERYTHING, Filters.of({"project": "p0"}), Filters.of({"tags": ["x"]}), valid_at(50.0)]
TABLES = beside(__file__)
ASKED, VOCABULARY = TABLES["ASKED"], TABLES["VOCABULARY"]


@pytest.fixture
def always(monkeypatch):
    """Words are stored from the first entry on, and stored anew when three have changed."""
    own = {"MIN_TEXTS_TO_STORE": 0, "TEXTS_PER_BLOCK": 7, "CHANGES": 3, "CHANGES_SHARE": 0.2}
    for name, value in own.items():
        monkeypatch.setattr(words, name, value)


def entries(rng, names):
    for name in names:
        text = " ".join(rng.choice(VOCABULARY, size=int(rng.integers(0, 14))))
        until = float(rng.integers(0, 100)) if rng.integers(0, 2) else None
        tags = ("x",) * int(rng.integers(0, 2))
        yield Entry(name, name[:2], text, project=f"p{rng.integers(0, 3)}", tags=tags, valid_until=until)


def found(vault):
    """Everything that the words of a vault decide."""
    by_bm25 = [Bm25Retriever(vault), Bm25Retriever(vault, 0.4, 0.1, JS.reading.bm25_words)]
    retrievers = [*by_bm25, TsRetriever(vault, SEARCH)]
    score = tfidf(vault, SOLERI.reading.words, lambda query: query.filters)
    ids = [entry.id for entry in vault.entries()]
    for scope in SCOPES:
        for text in ASKED:
            query = Query(text, filters=scope)
            yield [retriever.retrieve(query, depth) for retriever in retrievers for depth in (1, 3, None)]
            yield score(query, ids).tobytes()


def tokens(vault):
    """The ids of what says the word."""
    return sorted(hit.id for hit in Bm25Retriever(vault).retrieve(Query("token"), 9))


def anew(vault):
    """The same of a vault in memory that has just been filled."""
    with vault_with(*vault.entries()) as fresh:
        yield from found(fresh)


@pytest.mark.parametrize("seed", range(2))
def test_random_writes_leave_the_lists_of_a_vault_that_is_counted_anew(tmp_path, always, seed):
    rng = np.random.default_rng(seed)
    names = [f"e{at:02d}" for at in rng.permutation(40)]
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert(entries(rng, names[:30]))
        for at in range(6):
            writer, reader = (first, second) if at % 2 else (second, first)
            writer.ensure_words(analyses([BM25, SOLERI, JS, MOLTNET], writer))
            assert list(found(reader)) == list(anew(reader))
            some = [str(name) for name in rng.choice(names, size=int(rng.integers(1, 6)), replace=False)]
            writer.delete(some[:2])
            writer.upsert(entries(rng, some[1:]))
        assert [lacking for _, lacking in first.word_indexes()] < [9] * 4
        assert len(first.word_indexes()) == 4


@pytest.mark.parametrize("write", [lambda path: None, reindex_vault])
def test_indexing_leaves_no_word_index_behind_its_vectors(tmp_path, always, write):
    index_dataset(load(STARTER), path := str(tmp_path / "vault"), "lsa")
    write(path)
    with Vault(path) as vault:
        assert {behind for _, behind in vault.word_indexes()} == {0}


def test_a_new_process_reads_what_is_stored(tmp_path, always, monkeypatch):
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert(entries(np.random.default_rng(0), [f"e{at}" for at in range(30)]))
        vault.ensure_words(analyses([BM25], vault))
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
    with vault_with(Entry("a", text="token " * often), Entry("b", text="cache"), path=tmp_path / "vault") as vault:
        vault.ensure_words(analyses([BM25], vault))
        counted = vault.counted(BM25.reading.bm25_words.analysis, EVERYTHING)
        assert len(vault.word_indexes()) == 1
        assert counted.posting("token").counts.tolist() == [often]


def test_a_search_goes_on_while_another_process_writes(tmp_path, always):
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert([Entry("a", text="token")])
        with first.transaction():
            first.upsert([Entry("b", text="token")])
            assert (tokens(second), tokens(first)) == (["a"], ["a", "b"])
        assert tokens(second) == ["a", "b"]


def test_words_that_are_counted_anew_meanwhile_are_an_error_and_never_a_shorter_list(tmp_path, always):
    with Vault(tmp_path / "vault", create=True) as first, Vault(tmp_path / "vault") as second:
        first.upsert(entries(np.random.default_rng(0), [f"e{at}" for at in range(9)]))
        first.ensure_words(analyses([BM25], first))
        counted = first.counted(BM25.reading.bm25_words.analysis, EVERYTHING)
        second.drop_words()
        with pytest.raises(VaultError, match="during the search; search again"):
            counted.posting("token")


@tabled
def test_damaged_postings_are_refused(tmp_path, always, change):
    with vault_with(*(Entry(f"e{at}", text="token cache") for at in range(9)), path=tmp_path / "vault") as vault:
        vault.ensure_words([analysis(SEARCH)])
    with apsw.Connection(str(tmp_path / "vault")) as db:
        db.execute(change)
    db.close()
    with Vault(tmp_path / "vault") as vault, pytest.raises(VaultError, match="is damaged"):
        TsRetriever(vault, SEARCH).retrieve(Query('"token cache"'), 9)


def test_the_fields_that_are_read_are_all_that_the_texts_need():
    """The functions give the same text of an entry of which nothing else was read."""
    texts = {"why": "w", "impact": "i", "context": "c", "details": "d", "uri": "u", "category": "g"}
    full = Entry("id", "t", "x", tags=("a", "b"), **texts)
    for system in (BM25, SOLERI, JS, MOLTNET):
        for own in analyses([system], Vault(":memory:")):
            part = Entry("id", **{name: getattr(full, name) for name in own.fields if name != "id"})
            assert own.read(part) == own.read(full)
    assert len(analyses([BM25, SOLERI, JS, MOLTNET], Vault(":memory:"))) == 4


class Store:
    def __init__(self):
        self.now, self.writing, self.cache = (0, 1), False, RevisionCache(self)
        self.at, self.uncommitted = (lambda: self.now), (lambda: self.writing)


def append(since, old):
    return [*old, since]


@tabled
def test_a_value_is_made_once_for_each_state_of_the_store(steps):
    """Steps: a state, whether it is being written, whether values follow it, what is made and what is there."""
    store = Store()
    for state, writing, follows, values, expected in steps:
        store.now, store.writing = tuple(state), writing
        how = {"renew": append} if follows else {}
        assert [store.cache.get("kind", "a", lambda value=value: value, **how) for value in values] == expected


def test_many_are_read_once_each_and_the_oldest_go_first():
    store, asked = Store(), []
    for wanted in ("ab", "bc", "ca"):
        store.cache.many("kind", "key", list(wanted), lambda new: asked.append(new) or dict.fromkeys(new, 1), 2)
    assert asked == [["a", "b"], ["c"], ["a"]]


def test_an_entry_that_takes_the_row_of_a_removed_one_has_its_own_id(tmp_path):
    """SQLite gives the largest row number again once it is free."""
    with vault_with(Entry("a", text="token"), Entry("b", text="token token"), path=tmp_path / "vault") as vault:
        assert tokens(vault) == tokens(vault) == ["a", "b"]
        vault.delete(["b"])
        vault.upsert([Entry("c", text="token token")])
        assert tokens(vault) == ["a", "c"]


def copied_in(path, other):
    """What the vault at a path holds becomes what another one holds, in place."""
    into, source = apsw.Connection(str(path)), apsw.Connection(str(other))
    with into.backup("main", source, "main") as copying:
        copying.step()
    into.close()
    source.close()


def test_a_vault_that_is_restored_in_place_is_read_again(tmp_path):
    """The revision falls, and climbs to where it was with other entries."""
    path = tmp_path / "v.db"
    with Vault(path, create=True) as vault:
        retriever, view = Bm25Retriever(vault), vault.seen_by(Filters.of({"project": "p"}))

        def seen():
            found = sorted(hit.id for hit in retriever.retrieve(Query("token"), 9))
            return found, vault.count(), [entry.id for entry in vault.get(["a", "b", "c"])], view.count()

        vault.upsert([Entry("a", text="token", project="p")])
        copied_in(tmp_path / "saved.db", path)
        vault.upsert([Entry("b", text="token")])
        assert (vault.revision(), seen()) == (2, (["a", "b"], 2, ["a", "b"], 1))
        copied_in(path, tmp_path / "saved.db")
        assert (vault.revision(), seen()) == (1, (["a"], 1, ["a"], 1))
        vault_with(Entry("c", text="token", project="p"), path=path).close()
        assert (vault.revision(), seen()) == (2, (["a", "c"], 2, ["a", "c"], 2))


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """A vault, a view of it, and what is copied for that."""
    copied, copy = [], Vault.copied
    monkeypatch.setattr(Vault, "copied", lambda self, visible: copied.append(self) or copy(self, visible))
    with vault_with(Entry("a", text="token", project="p"), path=tmp_path / "v.db") as vault:
        yield vault, vault.seen_by(Filters.of({"project": "p"})), copied


def in_thread(do):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(do).result(timeout=60)


def read(view):
    """Some calls, after which a thread has one more copy at most."""
    return [view.count(), view.count(), len(list(view.entries()))][-1]


def test_an_older_snapshot_copies_a_view_once_and_lets_others_keep_theirs(copies):
    vault, view, copied = copies
    with vault.snapshot():
        vault.count()
        in_thread(lambda: vault.upsert([Entry("b", text="token", project="p")]))
        assert (in_thread(lambda: read(view)), read(view), len(copied)) == (2, 1, 2)
        assert (in_thread(lambda: read(view)), read(view), len(copied)) == (2, 1, 2)
    assert (read(view), len(copied)) == (2, 2)


def test_a_transaction_copies_a_view_once_a_write_and_keeps_none_of_it(copies):
    vault, view, copied = copies
    with pytest.raises(ZeroDivisionError), vault.transaction():
        for size in (2, 3):
            vault.upsert([Entry(f"b{size}", text="token", project="p")])
            assert (read(view), read(view)) == (size, size)
        assert len(copied) == 2
        raise ZeroDivisionError
    assert (read(view), len(copied)) == (1, 3)


def test_a_snapshot_inside_a_transaction_leaves_that_open():
    with Vault(":memory:") as vault:
        with pytest.raises(ZeroDivisionError), vault.transaction():
            vault.upsert([Entry("a", text="token")])
            with pytest.raises(VaultError), vault.snapshot():
                pass
            raise ZeroDivisionError
        assert vault.count() == 0


def test_a_view_of_a_vault_in_memory_is_read_while_another_thread_waits_for_the_writer():
    with Vault(":memory:") as vault, ThreadPoolExecutor(1) as pool:
        vault.upsert([Entry("a", text="token", project="p")])
        view = vault.seen_by(Filters.of({"project": "p"}))
        begin = time.monotonic()
        with vault.transaction():
            vault.upsert([Entry("b", text="token", project="p")])
            waiting = pool.submit(view.count)
            time.sleep(0.2)
            assert view.count() == 2
        assert (waiting.result(), time.monotonic() - begin < 15) == (2, True)
