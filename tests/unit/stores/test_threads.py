"""A vault and a searcher that threads share: the answers of one thread, while another writes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from steelyard.base.errors import MachineError, VaultError
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.vaults import reindex_vault, vault_embedder

WORDS = ["heron", "reed", "marsh", "newt", "pond", "rain", "dawn", "cluster"]
ENTRIES = [
    Entry(f"e{at:02}", title=WORDS[at % 8], text=f"{WORDS[at % 7]} {WORDS[at % 5]} {at}") for at in range(40)
]
QUERIES = [f"{one} {other}" for one in WORDS for other in WORDS[::2]]
THREADS = 8


@pytest.fixture(params=["file", "memory"])
def vault(request, tmp_path):
    path = str(tmp_path / "v.db")
    if request.param == "file":
        with Vault(path, create=True) as made:
            made.upsert(ENTRIES)
        reindex_vault(path, "lsa")
    with Vault(path if request.param == "file" else ":memory:") as shared:
        shared.upsert(ENTRIES)
        yield shared


def answers(searcher, queries):
    found = [searcher.search(query) for query in queries]
    return [([(hit.entry.id, hit.score) for hit in each.hits], each.embedding_calls) for each in found]


def test_eight_threads_on_one_searcher_get_what_one_gets(vault):
    def searcher():
        embedder = vault_embedder(vault)
        config = find_system("soleri").config(5, embedder.model if embedder else "")
        return Searcher(vault, config, embedder, clock=lambda: 0)

    expected = answers(searcher(), QUERIES)
    shared = searcher()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: answers(shared, QUERIES), range(THREADS)))

    assert found == [expected] * THREADS


def test_searches_go_on_while_a_thread_writes(vault):
    """What was there before is found throughout, whole; at the end all that was written."""
    searcher = Searcher(vault, find_system("soleri").config(50))
    searcher.search("heron")  # makes the indexes: a snapshot cannot write beside a writer
    done = threading.Event()

    def write():
        for at in range(60):
            vault.upsert(
                [Entry(f"new{at}", title="heron", text="written meanwhile"), Entry(f"pair{at}", title="heron")]
            )
        done.set()

    def read():
        seen = 0
        while not done.is_set() or not seen:
            with vault.snapshot():
                ids = {hit.entry.id for hit in searcher.search("heron").hits}
                counts = vault.count(), vault.count()
            assert ids, "nothing found"
            assert counts[0] == counts[1]
            assert counts[0] % 2 == 0  # both entries of a pair, or neither
            seen += 1
            time.sleep(0.05)  # a vault in memory lets a writer in only while nobody reads
        return seen

    readers = 1 if vault.path == ":memory:" else THREADS - 1
    with ThreadPoolExecutor(THREADS) as pool:
        writing, *reading = [pool.submit(write), *(pool.submit(read) for _ in range(readers))]
        writing.result()
        assert all(each.result() for each in reading)
    assert vault.count() == len(ENTRIES) + 120


def test_the_revision_of_a_snapshot_is_read_once_and_follows_its_own_writes(vault):
    before, asked = vault.revision(), []
    with vault.snapshot():
        vault._db.exec_trace = lambda _, sql, values: asked.append(sql) or True
        assert [vault.revision() for _ in range(3)] == [before] * 3
        vault._db.exec_trace = None
        assert sum("revision" in sql for sql in asked) == 1
        vault.upsert([Entry("own", text="heron")])
        assert vault.revision() == before + 1
    with ThreadPoolExecutor(1) as pool:
        pool.submit(vault.delete, ["own"]).result()
    assert vault.revision() == before + 2


def test_a_snapshot_cannot_make_an_index_beside_a_writer(vault):
    """SQLite does not let a reader wait for a writer who waits for the reader."""
    index, begun, done = KeywordIndex("threads", ("title",)), threading.Event(), threading.Event()

    def write():
        with vault.transaction():
            begun.set()
            done.wait(10)

    with ThreadPoolExecutor(1) as pool:
        with vault.snapshot():
            vault.count()
            writing = pool.submit(write)
            begun.wait(10)
            who = "thread" if vault.path == ":memory:" else "process"
            vault._db.set_busy_timeout(0)
            with pytest.raises(MachineError, match=f"another {who} is writing"):
                vault.ensure_index(index)
            done.set()
        writing.result()
        vault.ensure_index(index)


def test_a_transaction_is_of_the_thread_that_began_it(tmp_path):
    with Vault(tmp_path / "v.db", create=True) as vault, ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyError), vault.transaction():
            vault.upsert(ENTRIES)
            assert vault.count() == 40
            assert pool.submit(vault.count).result() == 0
            raise KeyError
        assert vault.count() == pool.submit(vault.count).result() == 0


def test_a_vault_is_closed_for_every_thread(vault):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(vault.count).result() == 40
        vault.close()
        for ask in (vault.count, lambda: pool.submit(vault.count).result()):
            with pytest.raises(VaultError, match="is closed"):
                ask()


def test_closing_ends_a_search_under_way_with_an_error_of_ours(vault):
    begun = threading.Event()
    vault.ensure_index(KeywordIndex("threads", ("title",)))

    def read():
        while True:
            vault.keyword(KeywordIndex("threads", ("title",)), "heron", [1.0], EVERYTHING, 5)
            begun.set()

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        begun.wait(10)
        vault.close()
        with pytest.raises(VaultError, match="is closed"):
            reading.result(10)


def test_the_connection_of_a_thread_ends_with_it(tmp_path):
    with Vault(tmp_path / "v.db", create=True) as vault:
        for _ in range(20):
            thread = threading.Thread(target=vault.count)
            thread.start()
            thread.join()
        assert len(vault._connections) <= 2
