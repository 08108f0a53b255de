"""Limits at their last value and one beyond it, damaged rows, and a vault that threads share."""

import ctypes
import dataclasses
import json
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import apsw
import numpy as np
import pytest
from hypothesis import given, strategies as st
from shared import tabled, vault_with

from steelyard import Entry, SearchConfig, Searcher, Vault, find_system, parse_strategy
from steelyard.base.errors import ConfigError, MachineError, VaultError
from steelyard.base.files import open_regular
from steelyard.base.machine import MEMORY, budget
from steelyard.extensions.network import wire
from steelyard.memory.entry import EVERY_FIELD, Relation
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex, Space
from steelyard.stores.sqlite import from_rows, guard, to_row
from steelyard.systems import analyses
from steelyard_eval.vaults import reindex_vault, vault_embedder


def test_limits_hold_at_their_last_value_and_not_one_beyond(tmp_path, monkeypatch):
    """MiB of memory of nine digits, a file of a MiB, a strategy of 10,000 characters."""
    path = tmp_path / "file"

    def mib(digits):
        monkeypatch.setenv(MEMORY, digits)
        return budget() // 1_048_576

    def opened(size):
        monkeypatch.setenv("STEELYARD_LARGEST_FILE_MB", "1")
        path.write_bytes(bytes(size))
        with open_regular(path) as file:
            return len(file.read())

    def strategy(length):
        """Of two signals; "rrf(b, " before and ", k=60)" behind are 14 more."""
        return len(str(parse_strategy(f"rrf(b, {'a' * length})", ["a" * length, "b"])))

    for ask, most, value, why in (
        (mib, "999999999", 999_999_999, "number of MiB"),
        (opened, 1_048_576, 1_048_576, "MB; set STEELYARD_LARGEST_FILE_MB"),
        (strategy, 9_986, 10_000, "10001 characters when"),
    ):
        assert ask(most) == value
        with pytest.raises((ConfigError, OSError), match=why):
            ask("1000000000" if ask is mib else most + 1)


def test_of_a_wrong_value_80_characters_are_shown_and_of_damage_200(tmp_path):
    config = find_system("echovault").config(10, "minilm").to_json()
    (tmp_path / "w.json").write_text(json.dumps({**config, "limit": "x" * 900}))
    with pytest.raises(ConfigError) as caught:
        SearchConfig.load(tmp_path / "w.json")
    assert f"'limit' = '{'x' * 76}...: it is" in str(caught.value)
    assert f"('{'r' * 196}...)" in str(guard.damaged("v", "r" * 900))  # quote, 196, three dots


def limit_memory(vault, size):
    """Set how many bytes a vault in memory may have; the answer is how many it may have now."""
    most = ctypes.c_int64(size)
    vault._db.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, ctypes.addressof(most))
    return most.value


def test_a_vault_in_memory_has_2_gib_at_most_and_says_so():
    entries = [Entry(f"e{at}", text="x" * 9_000) for at in range(100)]
    space, vectors = Space("m", "text", "{text}"), np.ones((100, 4_000), np.float32)
    with Vault(":memory:") as vault:
        assert limit_memory(vault, -1) == 2_147_418_112  # 64 KiB less
        limit_memory(vault, 500_000)
        with pytest.raises(MachineError, match="memory holds 2"):
            vault.upsert(entries)
        limit_memory(vault, 1_500_000)
        assert (vault.count(), vault.upsert(entries)) == (0, 100)
        with pytest.raises(MachineError, match="memory holds 2"):
            vault.put_vectors(space, [entry.id for entry in entries], vectors)
        assert (vault.count(), vault.spaces()) == (100, [])


def test_a_vault_file_that_finds_no_room_for_vectors_says_so(tmp_path):
    """A megabyte, for sqlite-vec's first 1,024 places of 16 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with vault_with(Entry("a"), path=tmp_path / "vault") as vault:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
        try:
            with pytest.raises(MachineError, match=r"write .*vault: .*;"):
                vault.put_vectors(Space("m", "text", "{text}"), ["a"], np.ones((1, 4_000), np.float32))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (vault.count(), vault.spaces()) == (1, [])


def test_the_words_of_two_thousand_entries_are_stored_and_of_fewer_are_not(tmp_path):
    entries = [Entry(f"e{at}", text="token") for at in range(2_000)]
    [own] = analyses([find_system("bm25")], Vault(":memory:"))
    with Vault(tmp_path / "vault", create=True) as vault:
        for some, stored in ((entries[:-1], 0), (entries[-1:], 1)):
            vault.upsert(some)
            vault.ensure_words([own])
            assert len(vault.word_indexes()) == stored


@tabled
def test_parameters_of_retrievers_lie_between_their_ends(system, retriever, parameter, taken, refused):
    record = find_system(system).config(10, "minilm").to_json()
    for value in (*taken, *refused):
        record["retrievers"][retriever][parameter] = value
        if value in taken:
            assert SearchConfig.from_json(record).retrievers[retriever].parameters[parameter] == value
        else:
            with pytest.raises(ConfigError, match=rf"{retriever}\.{parameter}"):
                SearchConfig.from_json(record)


def test_a_value_of_a_vault_has_256_mib_at_most(tmp_path):
    with Vault(tmp_path / "vault", create=True) as vault:
        limits = (apsw.SQLITE_LIMIT_LENGTH, apsw.SQLITE_LIMIT_SQL_LENGTH, apsw.SQLITE_LIMIT_ATTACHED)
        assert [vault._db.limit(own) for own in limits] == [268_435_456, 1_048_576, 0]


def test_a_pragma_that_is_not_listed_is_denied():
    names = ("user_version", "writable_schema", None)
    answers = [guard._authorize(apsw.SQLITE_PRAGMA, name, None, None, None) for name in names]
    assert [answer == apsw.SQLITE_OK for answer in answers] == [True, False, False]


def test_no_second_is_left_at_the_deadline_itself(monkeypatch):
    monkeypatch.setattr(wire.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(wire, "_exchange", wire._Exchange())
    wire.begin(0.5, 1)
    assert wire._seconds() == 0.5
    wire.begin(0.0, 1)
    with pytest.raises(TimeoutError):
        wire._seconds()


entries = st.builds(
    Entry,
    id=st.text("abc", min_size=1, max_size=3),
    title=st.text(max_size=5),
    tags=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    importance=st.none() | st.floats(0, 1),
    created_at=st.none() | st.floats(0, 1e9),
    relations=st.just(()) | st.just((Relation("supports", "b", 0.5),)),
    extra=st.just({}) | st.just({"a": 1}),
)


@given(st.lists(entries, max_size=4))
def test_what_was_written_is_read(given):
    found = from_rows(EVERY_FIELD, [to_row(entry) for entry in given])
    assert found == given
    assert [dataclasses.asdict(entry) for entry in found] == [dataclasses.asdict(entry) for entry in given]


def test_fields_that_were_not_read_are_empty_and_not_shared():
    one, other = from_rows(("id", "title"), [("a", "A"), ("b", "B")])
    assert (one, other) == (Entry("a", title="A"), Entry("b", title="B"))
    assert one.extra is not other.extra


@pytest.mark.parametrize(
    ("name", "value"), [("title", 3), ("importance", "high"), ("tags", "{}"), ("tags", b"[]"), ("id", "a b")]
)
def test_a_damaged_row_is_named_by_itself_and_among_others(name, value):
    rows = [to_row(Entry("first")), list(to_row(Entry("second")))]
    rows[1][EVERY_FIELD.index(name)] = value
    for some in (rows, rows[1:]):
        with pytest.raises(VaultError, match=f"'{value if name == 'id' else 'second'}' of the vault is damaged"):
            from_rows(EVERY_FIELD, some)


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
        vault_with(*ENTRIES, path=path).close()
        reindex_vault(path, "lsa")
    with Vault(path if request.param == "file" else ":memory:") as shared:
        shared.upsert(ENTRIES)
        yield shared


def answers(searcher):
    found = map(searcher.search, QUERIES)
    return [([(hit.entry.id, hit.score) for hit in each.hits], each.embedding_calls) for each in found]


def test_eight_threads_on_one_searcher_get_what_one_gets(vault):
    def searcher():
        embedder = vault_embedder(vault)
        config = find_system("soleri").config(5, embedder.model if embedder else "")
        return Searcher(vault, config, embedder, clock=lambda: 0)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(answers, [searcher()] * THREADS))
    assert found == [answers(searcher())] * THREADS


def test_searches_go_on_while_a_thread_writes(vault):
    """What was there before is found throughout, whole; at the end all that was written."""
    searcher = Searcher(vault, find_system("soleri").config(50))
    searcher.search("heron")  # makes the indexes: a snapshot cannot write beside a writer
    done = threading.Event()

    def write():
        for at in range(60):
            vault.upsert([Entry(f"{name}{at}", title="heron") for name in ("new", "pair")])
        done.set()

    def read():
        seen = 0
        while not done.is_set() or not seen:
            with vault.snapshot():
                ids = {hit.entry.id for hit in searcher.search("heron").hits}
                counts = vault.count(), vault.count()
            assert ids, "nothing found"
            assert (counts[0], counts[0] % 2) == (counts[1], 0)  # both entries of a pair, or neither
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


def test_a_vault_is_closed_for_every_thread_also_for_a_search_under_way(vault):
    begun, index = threading.Event(), KeywordIndex("threads", ("title",))
    vault.ensure_index(index)

    def read():
        while True:
            vault.keyword(index, "heron", [1.0], EVERYTHING, 5)
            begun.set()

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        begun.wait(10)
        vault.close()
        for ask in (lambda: reading.result(10), vault.count, lambda: pool.submit(vault.count).result()):
            with pytest.raises(VaultError, match="is closed"):
                ask()


def test_the_connection_of_a_thread_ends_with_it(tmp_path):
    with Vault(tmp_path / "v.db", create=True) as vault:
        for _ in range(20):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(vault.count)
        assert len(vault._connections) <= 2
