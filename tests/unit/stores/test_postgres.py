"""A store in PostgreSQL beside a vault, and pgvector's HNSW index beside the exact search.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/postgres pytest tests/unit/stores/test_postgres.py

The role needs to make databases and roles; `make postgres` starts such a server. A search whose breadth is larger
than the graph visits every vector of it, so its lists are the exact ones, to the bit.
"""

import os
import re
import resource
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from shared import STARTER, document, done, tabled

from steelyard import Entry, Filters, Query, RecordedEmbedder, Searcher, Vault, find_system
from steelyard.base.errors import ConfigError, MachineError, VaultError
from steelyard.extensions.postgres import PostgresVault
from steelyard.extensions.postgres.server import Server
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex, Space
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import open_vault
from steelyard.systems import SYSTEMS
from steelyard.testing.readable import rows
from steelyard_eval.datasets import load
from steelyard_eval.extensions.serve.server import Served
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.vaults.read import RankedBy, open_searcher
from steelyard_eval.vaults.write import _renew

SPACE = Space("model", "text", "{text}")
FILTERS = (EVERYTHING, *map(Filters.of, ({"project": "api"}, {"superseded": False}, {"tags": "auth"})))


def connect(address):
    psycopg = pytest.importorskip("psycopg")
    return psycopg.connect(address, autocommit=True)


def together(do, threads):
    """What each of so many threads returns for its number."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(do, range(threads)))


OURS = "application_name = 'steelyard' AND datname = current_database()"
ENDS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
ROLE = f"steelyard_reader_{os.getpid()}"
"""Of this process alone, as the database is: roles are of the whole server."""


@contextmanager
def role(address):
    """A role that may read what the table access gives it: its address."""
    with connect(address) as admin:
        admin.execute(f"DROP ROLE IF EXISTS {ROLE}")
        admin.execute(f"CREATE ROLE {ROLE} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA steelyard TO {ROLE}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA steelyard TO {ROLE}")
        scheme, _, rest = address.partition("://")
        yield f"{scheme}://{ROLE}@{rest.rpartition('@')[2]}"
        admin.execute(f"DROP OWNED BY {ROLE}")
        admin.execute(f"DROP ROLE {ROLE}")


@pytest.fixture
def reader(postgres):
    """The address of a role that sees one tenant, and one vault."""
    with PostgresVault(postgres, create=True), role(postgres) as address, connect(postgres) as admin:
        seen = (ROLE, ROLE)
        admin.execute("INSERT INTO steelyard.access VALUES (%s, 'tenant', 'a'), (%s, 'vault', 'shared')", seen)
        yield address


def test_every_system_finds_and_ranks_as_in_a_vault(postgres, dataset):
    """Ids, scores and signals to the bit, as another process that reads them has them while entries change."""
    with PostgresVault(postgres, create=True) as written, Vault(":memory:") as vault:
        both = [Workspace.open(dataset, vault=own) for own in (vault, written)]
        with written.transaction():
            for space in both:
                for system in SYSTEMS.values():
                    space.index_for([system], system.config().effective.signals | system.config().needs)
        with PostgresVault(postgres) as read:
            for name, system in SYSTEMS.items():
                how = (system.config(), both[0].embedder)
                searchers = [Searcher(store, *how, clock=lambda: dataset.as_of) for store in (vault, read)]
                for at, query in enumerate(dataset.queries[:16]):
                    if at % 8 == 7:
                        for own in (vault, written):
                            own.delete([dataset.entries[at].id])
                            own.upsert([Entry(f"new{at}", title=query.text, text=name)])
                        read.refresh()
                    asked = Query(query.text, filters=FILTERS[at % len(FILTERS)])
                    here, there = (own.search(asked).hits for own in searchers)
                    assert there == here, (name, query.text)


def test_what_breaks_off_is_in_neither(postgres):
    """The copy and the database go back together, and both take what comes next, and what others wrote before."""
    with PostgresVault(postgres, create=True) as store:
        with PostgresVault(postgres) as other:
            other.upsert([Entry("a", text="one")])
        with pytest.raises(RuntimeError), store.transaction():
            store.upsert([Entry("a", text="two"), Entry("b")])
            store.put_vectors(SPACE, ["a"], rows((1, 2)))
            store.save_model("lsa", "lsa", {}, {"x": b"1"})
            raise RuntimeError
        store.refresh()
        assert ([e.text for e in store.entries()], store.spaces(), store.models()) == (["one"], [], [])
        with PostgresVault(postgres) as other:
            assert ([e.text for e in other.entries()], other.spaces(), other.models()) == (["one"], [], [])
        store.upsert([Entry("b")])
        with PostgresVault(postgres) as other:
            assert other.count() == 2


def test_a_copy_follows_what_others_write(postgres):
    """Entries, vectors that are lost or kept, spaces made anew, models; of a transaction the end counts."""
    with PostgresVault(postgres, create=True) as one, PostgresVault(postgres) as other:

        def kept():
            other.refresh()
            found = other.vectors_of(SPACE, ["a", "b", "c", "none"])
            return {id_: vector.tolist() for id_, vector in found.items()}

        one.upsert([Entry("a", text="x"), Entry("b", text="y"), Entry("c", text="z")])
        one.put_vectors(SPACE, ["a", "b"], rows((1, 2), (3, 4)))
        one.save_model("bought", "api", {"dim": 2}, {"w": b"\0\1"})
        assert kept() == {"a": [1, 2], "b": [3, 4]}
        assert other.load_model("bought") == ("api", {"dim": 2}, {"w": b"\0\1"})

        one.upsert([Entry("a", text="new")])
        one.upsert([Entry("b", text="new")], keep_vectors=True)
        one.delete(["c"])
        assert kept() == {"b": [3, 4]}
        assert [e.text for e in other.entries()] == ["new", "new"]

        with one.transaction():
            one.drop_space(SPACE)
            one.put_vectors(SPACE, ["a"], rows((1, 2, 3)))
        assert (kept(), other.spaces()) == ({"a": [1, 2, 3]}, [(SPACE, 3)])
        other.upsert([Entry("d")])
        assert other.missing(SPACE) == ["b", "d"]

        one.drop_space(SPACE)
        with one.transaction():  # put twice, lost to a new text, deleted, of no entry at all
            one.upsert([Entry(id_, text="old") for id_ in "abc"])
            one.put_vectors(SPACE, ["a", "b", "c", "none"], rows((1, 2), (3, 4), (5, 6), (7, 8)))
            one.put_vectors(SPACE, ["a"], rows((9, 10)))
            one.upsert([Entry("a", text="newer")], keep_vectors=True)
            one.upsert([Entry("b", text="newer")])
            one.delete(["c"])
        assert kept() == {"a": [9, 10]}


def test_writers_take_turns(postgres):
    """Four of them at once: each reads what the one before has left, so nothing is lost."""
    with PostgresVault(postgres, create=True) as first:
        first.upsert([Entry("count", importance=0.0)])

    def add(_):
        with PostgresVault(postgres) as own:
            for _ in range(10):
                with own.transaction():
                    [known] = own.get(["count"])
                    own.upsert([Entry("count", importance=known.importance + 1)])

    together(add, 4)
    with PostgresVault(postgres) as last:
        assert last.get(["count"])[0].importance == 40


def test_a_snapshot_is_one_state_and_only_reads(postgres):
    with PostgresVault(postgres, create=True) as one, PostgresVault(postgres) as other:
        with other.snapshot():
            one.upsert([Entry("a")])
            other._look_at = 0.0
            assert (other.revision(), other.count()) == (other.revision(), 0)
            with pytest.raises(VaultError, match="snapshot is read-only"):
                other.upsert([Entry("b")])
        other._look_at = 0.0
        assert (other.revision() > 0, other.count()) == (True, 1)


def test_a_role_sees_its_tenants_and_nothing_of_others(postgres, reader):
    """Entries, vectors and counts; another role's tenant has no id, no word and no number in it."""
    index = KeywordIndex("sample", ("text",))
    with PostgresVault(postgres) as owner:
        shared = Entry("3", text="pear", tenant="b", vault="shared")
        owner.upsert([Entry("1", text="apple", tenant="a"), Entry("2", text="apple pear", tenant="b"), shared])
        owner.put_vectors(SPACE, ["1", "2", "3"], rows((1, 0), (0, 1), (1, 1)))
        with PostgresVault(reader) as seen:
            assert (seen.restricted, owner.restricted) == (True, False)
            assert [e.id for e in seen.entries()] == seen.vectors(SPACE, EVERYTHING)[0] == ["1", "3"]

            def looks():
                yield seen.keyword(index, "apple OR pear", [1.0], EVERYTHING, 9)
                yield seen.nearest(SPACE, rows((1, 1))[0], EVERYTHING, 9, True)
                yield [entry.id for entry in seen.entries()]
                yield seen.count(), seen.get(["2", "x0", "x5"])

            before = list(looks())
            for at in range(30):
                theirs = ("b", "a b", "A", "'; --", "")[at % 5]
                owner.upsert([Entry(f"x{at * 5 % 9}", text=f"apple {at}", tenant=theirs)], keep_vectors=True)
                seen.refresh()
                assert list(looks()) == before
            owner.upsert([Entry("1", text="apple", tenant="b"), Entry("2", text="apple pear", tenant="a")])
            seen.refresh()
            assert [e.id for e in seen.entries()] == ["2", "3"]


def test_a_role_writes_what_it_may_see_and_was_given(postgres, reader):
    """Without the right to write, nothing; with it, no entry of another tenant, by whatever id."""
    with PostgresVault(postgres) as owner, connect(postgres) as admin:
        owner.upsert([Entry("theirs", tenant="b")])
        with PostgresVault(reader) as own:
            with pytest.raises(VaultError, match="may not do"):
                own.upsert([Entry("1", tenant="a")])
            admin.execute(f"GRANT INSERT, UPDATE, DELETE ON steelyard.entries, steelyard.vectors TO {ROLE}")
            admin.execute(f"GRANT UPDATE ON steelyard.meta TO {ROLE}")
            assert own.upsert([Entry("1", tenant="a")]) == 1
            for entry in (Entry("2", tenant="b"), Entry("theirs", tenant="a")):
                with pytest.raises(VaultError, match="may not do"):
                    own.upsert([entry])
            assert own.delete(["theirs"]) == 0
            assert [e.id for e in own.entries()] == ["1"]
        owner.refresh()
        assert [(e.id, e.tenant) for e in owner.entries()] == [("1", "a"), ("theirs", "b")]


def test_a_role_searches_by_a_model_fitted_on_what_it_sees(postgres, reader):
    """The words of another tenant are in no array that it can read, and move none of its scores."""
    own, answers = [Entry(f"a{at}", text=f"deploy rotate keys {at}", tenant="a") for at in range(12)], []
    for word in ("zebra", "yak"):
        theirs = [Entry(f"b{at}", text=f"{word} deploy {at}", tenant="b") for at in range(12)]
        with PostgresVault(postgres) as owner, connect(reader) as seen:
            owner.upsert([*own, *theirs])
            _renew(owner, None)
            for table in ("models", "model_arrays"):
                assert seen.execute(f"SELECT count(*) FROM steelyard.{table}").fetchone() == (0,)
        with open_searcher([reader], RankedBy("vector"), 5) as searcher:
            answers.append([(hit.entry.id, hit.score) for hit in searcher.search("rotate keys").hits])
    assert answers[0] == answers[1] and len(answers[0]) == 5


OPENED = """
import os, signal, sys
from steelyard.extensions.postgres import PostgresVault
store = PostgresVault(sys.argv[1])
"""


def process(address, then="", **options):
    return subprocess.run([sys.executable, "-c", OPENED + then, address], check=False, **options)


def test_a_copy_is_for_its_process_alone_and_goes_with_it(postgres, tmp_path, monkeypatch):
    """Whether it is closed, or open when the process ends; the next one removes what a kill has left."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    with PostgresVault(postgres, create=True) as store:
        store.upsert([Entry("a")])
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("copy.db*")}
        assert files == dict.fromkeys(("copy.db", "copy.db-wal", "copy.db-shm"), 0o600)
        assert process(postgres).returncode == 0  # sweeps, too, and leaves what is in use
        assert [path.parent for path in tmp_path.rglob("copy.db")] == list(tmp_path.iterdir())
        assert store.refresh() is None
    assert list(tmp_path.iterdir()) == []
    assert process(postgres, "os.kill(os.getpid(), signal.SIGKILL)").returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    PostgresVault(postgres).close()
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_finds_no_room_is_one_message(postgres, tmp_path, monkeypatch):
    """2 MB a file, for 16 MB of vectors, then for 3 MB of text; then a folder that is a file."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))

    little = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    with PostgresVault(postgres, create=True) as store:
        for text, numbers in (("x", 4_000), ("x" * 3_000_000, 0)):
            store.upsert([Entry("a", text=text)])
            if numbers:  # sqlite-vec makes room for 1,024 vectors at once
                store.put_vectors(SPACE, ["a"], rows([1] * numbers))
            said = process(postgres, preexec_fn=little, capture_output=True, text=True).stderr.splitlines()[-1]
            assert "MachineError: cannot write" in said and "copy.db: " in said and "; free space" in said
        assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setenv("STEELYARD_CACHE", __file__)
    with pytest.raises(MachineError, match=r"write .*: .*;"):
        PostgresVault(postgres)


def test_a_lost_connection_is_made_again(postgres):
    """Reads go on; a write in the middle of which it broke is kept nowhere."""
    with PostgresVault(postgres, create=True) as store, connect(postgres) as admin:
        store.upsert([Entry("a")])
        admin.execute(ENDS)
        store.refresh()
        assert store.count() == 1
        with pytest.raises(MachineError, match="run the same"), store.transaction():
            store.upsert([Entry("b")])
            admin.execute(ENDS)
        assert store.count() == 1
        assert store.upsert([Entry("b")]) == 1
        with PostgresVault(postgres) as other:
            assert other.count() == 2


@tabled
def test_an_address_holds_no_secret(address, why):
    """Refused before anything is asked of the network, and not repeated."""
    pytest.importorskip("psycopg")
    with pytest.raises(ConfigError, match=why) as raised:
        open_vault(address)
    assert "hunter2" not in str(raised.value)


def test_what_is_no_store_is_refused(postgres):
    """A database without one, one of a newer version, and a view in the place of a table."""
    with pytest.raises(VaultError, match="steelyard index DATASET"):
        PostgresVault(postgres)
    with PostgresVault(postgres, create=True) as store:
        with pytest.raises(MachineError) as told, store._server._told():
            raise pytest.importorskip("psycopg").Error("x" * 400)
        assert len(max(re.findall(r"'x+\.*", str(told.value)))) == 300
    with connect(postgres) as admin:
        admin.execute("CREATE VIEW steelyard.more AS SELECT 1")
        with pytest.raises(VaultError, match="other objects"):
            PostgresVault(postgres)
        admin.execute("DROP VIEW steelyard.more")
        admin.execute("UPDATE steelyard.meta SET version = 9")
        with pytest.raises(VaultError, match="schema 9"):
            PostgresVault(postgres)


def test_the_commands_take_an_address(postgres, tmp_path):
    """index, search, get, import: what they print of a file they print of a database."""
    file, hits = str(tmp_path / "starter.db"), []
    for place in (file, postgres):
        counts = document("index", str(STARTER), place)
        assert (counts["entries"], counts["changed"]) == (131, 131)
        hits.append(document("search", place, "rotate the tokens", "--system", "plain")["hits"])
    assert document("index", str(STARTER), postgres)["changed"] == 0
    assert hits[0] == hits[1]
    document("import", postgres, str(tmp_path / "again"))
    assert list(load(tmp_path / "again").entries) == sorted(load(STARTER).entries, key=lambda entry: entry.id)


RECIPE = find_system("vector").reading.recipe
OF_TEXT = Space("model", "text", RECIPE)
COUNT, DIM, ALL = 300, 8, 1000
EVEN = Filters.of({"project": "even"})
RARE = Filters.of({"category": "rare"})


def vectors(seed, count=COUNT):
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


@pytest.fixture
def filled(postgres):
    """The address of 300 entries with vectors and an index of them."""
    with PostgresVault(postgres, create=True) as store:
        kinds, rare = {0: "even", 1: "odd"}, {0: "rare"}
        own = [{"project": kinds[n % 2], "category": rare.get(n % 30, "")} for n in range(COUNT)]
        store.upsert(Entry(f"e{n:03d}", text=f"word{n}", **fields) for n, fields in enumerate(own))
        twice = np.repeat(vectors(1, COUNT // 2), 2, axis=0)  # ties, which the server finds in this order
        store.put_vectors(OF_TEXT, [f"e{n:03d}" for n in reversed(range(COUNT))], twice)
        store.make_hnsw()
    return postgres


@pytest.fixture
def agent(filled):
    """The address of a role that sees one tenant."""
    with role(filled) as address:
        yield address


def found(store, vector, depth=10, filters=EVERYTHING, first=True, metric="cosine"):
    return store.nearest(OF_TEXT, vector, filters, depth, first, metric)


@pytest.mark.parametrize("filters", [EVERYTHING, EVEN])
def test_candidates_are_the_servers(filled, filters):
    """What is taken from the server behind the copy's back is not found, though the copy has it.

    Half of the entries are even, so that some of the 4 x 10 proposals are enough for ten.
    """
    with open_vault(filled, hnsw=ALL) as store, open_vault(filled) as exact, connect(filled) as admin:
        [probe] = vectors(3, 1)
        first, *rest = found(exact, probe, filters=filters)
        admin.execute("DELETE FROM steelyard.vectors WHERE id = %s", (first.id,))
        assert [hit.id for hit in found(store, probe, filters=filters)][:9] == [hit.id for hit in rest]
        assert found(exact, probe, filters=filters)[0] == first


SHORT = ({"filters": RARE}, {"depth": 2 * COUNT})
ANY = ({}, {"filters": EVEN}, {"filters": EVEN, "first": False}, {"metric": "l2"})


@pytest.mark.parametrize(("breadth", "asked"), [(1, SHORT), (40, SHORT), (ALL, ANY)])
def test_lists_are_the_exact_ones_in_ids_scores_and_length(filled, breadth, asked):
    """One entry in 30 passes the filter, 4 x 10 proposals are too few for ten of them; and more than there are."""
    with open_vault(filled, hnsw=breadth) as store, open_vault(filled) as exact:
        for vector in vectors(4, 10):
            for how in asked:
                assert found(store, vector, **how) == found(exact, vector, **how)
            assert len(found(store, vector, depth=100)) == 100


def test_what_the_copy_does_not_have_is_dropped(filled):
    """An entry that another process is writing: the copy of one state searches exactly."""
    with open_vault(filled, hnsw=ALL) as store, open_vault(filled) as other:
        [probe] = vectors(5, 1)
        before = found(store, probe)
        with store.snapshot():
            other.upsert([Entry("new")])
            other.put_vectors(OF_TEXT, ["new"], probe[None])
            assert found(store, probe) == before
        store.refresh()
        assert found(store, probe)[0].id == "new"


def test_numbers_beyond_half_precision_keep_their_direction(postgres):
    """65,504 is the largest, 6e-8 the smallest: what is indexed and asked has length 1."""
    with PostgresVault(postgres, create=True) as store:
        store.upsert(Entry(f"e{n:03d}") for n in range(COUNT))
        scales = np.where(np.arange(COUNT) % 2, 1e5, 1e-5).astype(np.float32)[:, None]
        store.put_vectors(OF_TEXT, [f"e{n:03d}" for n in range(COUNT)], scales * vectors(1))
        store.make_hnsw()
        for scale in (1e5, 1e-5):
            [probe] = np.float32(scale) * vectors(2, 1)
            exact = found(store, probe)
            store.search_by(ALL)
            assert found(store, probe) == exact
            store.search_by(None)


def test_indexes_of_spaces_that_are_gone_go(filled):
    """And those of layers are not made: no system searches them by an index."""
    names = "SELECT indexname FROM pg_indexes WHERE schemaname = 'steelyard' AND indexname LIKE 'hnsw%'"
    with open_vault(filled) as store, connect(filled) as admin:
        [before] = admin.execute(names).fetchall()
        store.drop_space(OF_TEXT)
        store.put_vectors(OF_TEXT, ["e001"], vectors(1, 1))
        with pytest.raises(ConfigError, match="HNSW index"):
            open_vault(filled, hnsw=40)
        store.put_vectors(Space("model", "l0", RECIPE), ["e001"], vectors(1, 1))
        assert list(store.make_hnsw()) == [OF_TEXT]
        [after] = admin.execute(names).fetchall()
        assert before != after


def searcher(store, name="plain"):
    texts = {"what is near": vectors(7, 1)[0]}
    return Searcher(store, find_system(name).config(), RecordedEmbedder("model", RECIPE, texts))


def test_a_search_says_that_it_was_approximate(filled):
    """Where vectors were searched, also as a tier of several; a search by keywords has no such note."""
    note = ("vectors were searched by HNSW with ef_search 100, which may miss some of the nearest",)
    with open_vault(filled, hnsw=100) as store, open_vault(filled) as exact, Vault(":memory:") as other:
        assert searcher(store).search("what is near").notes == note
        tiers = Federation([Tier("b", other), Tier("a", store)])
        assert searcher(tiers).search("what is near").notes[1:] == note  # the first is of b, which has no vectors
        assert searcher(exact).search("what is near").notes == ()
        assert searcher(store).search("what is near", semantic="never").notes == ()
        by_distance = searcher(store, "echovault:shipped").search("what is near")
        assert "vector" in by_distance.table.columns and by_distance.notes == ()


def test_a_recording_and_whom_the_index_would_tell_of_others_are_refused(filled, agent):
    """To search by it and to make it."""
    with open_vault(filled, hnsw=100) as store, pytest.raises(ConfigError, match="cannot record an approximate"):
        searcher(store).record([Query("what is near")], {"vector"}, 10, "")
    with open_vault(agent) as seen:
        for asked in (lambda: open_vault(agent, hnsw=100), seen.make_hnsw):
            with pytest.raises(ConfigError, match="covers the vectors"):
                asked()


def test_what_cannot_be_is_refused(filled, postgres, tmp_path, monkeypatch):
    def refused(ask, why):
        with pytest.raises(ConfigError, match=why):
            ask()

    for breadth in (0, 1001):
        told = f"hnsw is {breadth}; ef_search of pgvector is 1 to 1000"
        refused(lambda own=breadth: open_vault(filled, hnsw=own), told)
    refused(lambda: open_vault(tmp_path / "v.db", create=True, hnsw=40), "only databases")
    assert list(tmp_path.glob("v.db*")) == []
    with open_vault(filled) as store:
        store.put_vectors(Space("wide", "text", "{text}"), ["e001"], np.ones((1, 4001), np.float32))
        refused(store.make_hnsw, "4001 numbers; pgvector's")
        monkeypatch.setattr(store._server, "pgvector", (0, 7, 4))
        refused(lambda: store.search_by(40), r"pgvector 0\.7\.4; HNSW")
        for space, _ in store.spaces():
            store.drop_space(space)
        monkeypatch.setattr(store._server, "pgvector", (0, 8))
        assert store.make_hnsw() == {}
        refused(lambda: store.search_by(40), r"DATASET .* --hnsw")


def test_threads_that_search_at_once_have_a_connection_each(filled, until):
    """Kept for the next ones, made anew when the server let go of them, and ended with the store."""
    open_ones = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS}"
    probes = vectors(8, 4)
    barrier = threading.Barrier(4)

    def search(at):
        with store._server.run_statement("SELECT 1"):
            barrier.wait(60)
        return found(store, probes[at])

    with open_vault(filled, hnsw=ALL) as store, connect(filled) as admin:
        with open_vault(filled) as exact:
            expected = [found(exact, probe) for probe in probes]
        for _ in range(2):
            assert together(search, 4) == expected
            assert admin.execute(open_ones).fetchone() == (4,)
        admin.execute(ENDS)
        assert together(search, 4) == expected
        store.close()
        assert until(lambda: admin.execute(open_ones).fetchone() == (0,))


def test_a_connection_that_is_in_use_while_settings_change_is_not_used_again(filled, monkeypatch):
    """Also one that another thread takes while the idle ones are being closed."""
    psycopg = pytest.importorskip("psycopg")
    ended, others = psycopg.Connection.close, []

    def close(own):
        if not others:
            others.append(server.run_statement("SELECT 1"))
            others[0].__enter__()
        ended(own)

    server = Server(filled, create=False)
    with server.run_statement("SELECT 1"), server.run_statement("SELECT 1"):
        pass
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "close", close)
        server.configure(("work_mem = '5MB'",))
    others[0].__exit__(None, None, None)
    with server.run_statement("SHOW work_mem") as (_, rows):
        assert rows.fetchone() == ("5MB",)
    server.close()


def test_the_commands_make_it_measure_it_and_search_by_it(postgres, tmp_path, monkeypatch):
    """131 entries: lists of 100 visit nearly all, and half precision may take another one for the last place."""
    monkeypatch.setattr("steelyard.extensions.postgres.measured.SAMPLE", 20)
    counts = document("index", str(STARTER), postgres, "--hnsw")
    systems = map(find_system, ("vector", "moltnet", "soleri", "echovault"))
    assert {record["recipe"] for record in counts["hnsw"]} == {system.reading.recipe for system in systems}
    for record in counts["hnsw"]:
        assert record["probes"] == "20 queries of the data set" and record["bytes"] > 0
        assert [row["ef_search"] for row in record["rows"]] == [None, 40, 100, 200, 400]
        assert all(row["recall@10"] == 1 and row["recall@100"] > 0.99 for row in record["rows"])
    assert "ef_search  recall@10" in done("index", str(STARTER), postgres, "--hnsw").stdout
    asked = ("search", postgres, "rotate keys", "--system", "vector")
    exact, near = document(*asked), document(*asked, "--set", "hnsw=1000")
    assert near["hits"] == exact["hits"]
    assert (len(near["notes"]), exact["notes"]) == (1, [])
    done("search", postgres, "keys", "--set", "hnsw=100", "--scope", "vault=notes", code=2)
    done("index", str(STARTER), str(tmp_path / "v.db"), "--hnsw", code=2)
    assert not (tmp_path / "v.db").exists()


def test_a_server_for_agents_searches_by_it(filled, agent):
    """As `steelyard serve --hnsw`; what is served to a role with a part is refused when it starts."""
    opened = Served(filled, by="vector", hnsw=ALL).opened()
    assert opened.file.approximate([OF_TEXT]) == "HNSW with ef_search 1000"
    opened.close()
    with pytest.raises(ConfigError, match="all tenants"):
        Served(agent, by="vector", hnsw=ALL).opened()
