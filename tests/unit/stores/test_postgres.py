"""A store in PostgreSQL beside a vault: the same bits, hidden rows, writers in turn, servers that go away.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/postgres pytest tests/unit/stores/test_postgres.py

The role needs to make databases and roles; `make postgres` starts such a server.
"""

import json
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError, MachineError, VaultError
from steelyard.extensions.postgres import PostgresVault
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.retrievers.english import tsvector
from steelyard.stores.base import KeywordIndex, Space
from steelyard.stores.sqlite import Vault, open_vault
from steelyard.systems import SYSTEMS
from steelyard.systems.moltnet import text as moltnet_text
from steelyard.testing.readable import rows
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.vaults.read import RankedBy, open_searcher
from steelyard_eval.vaults.write import _renew

STARTER = Path(__file__).resolve().parents[3] / "qrels" / "starter"
SPACE = Space("model", "text", "{text}")
FILTERS = (EVERYTHING, Filters.of({"project": "api"}), Filters.of({"superseded": False}))


def connect(address):
    psycopg = pytest.importorskip("psycopg")
    return psycopg.connect(address, autocommit=True)


def count(address):
    with PostgresVault(address) as store:
        return store.count()


OURS = "application_name = 'steelyard' AND datname = current_database()"
ROLE = f"steelyard_reader_{os.getpid()}"
"""Of this process alone, as the database is: roles are of the whole server."""


@pytest.fixture(scope="module")
def dataset():
    return load(STARTER)


@pytest.fixture
def reader(postgres):
    """A role that may read what the table access gives it, and its address."""
    name = ROLE
    with connect(postgres) as admin, PostgresVault(postgres, create=True):
        admin.execute(f"DROP ROLE IF EXISTS {name}")
        admin.execute(f"CREATE ROLE {name} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA steelyard TO {name}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA steelyard TO {name}")
        admin.execute(
            "INSERT INTO steelyard.access VALUES (%s, 'tenant', 'a'), (%s, 'vault', 'shared')", (name, name)
        )
        scheme, _, rest = postgres.partition("://")
        yield f"{scheme}://{name}@{rest.rpartition('@')[2]}"
        admin.execute(f"DROP OWNED BY {name}")
        admin.execute(f"DROP ROLE {name}")


# One code path


def test_every_system_finds_and_ranks_as_in_a_vault(postgres, dataset):
    """Ids, scores and signals to the bit, as another process that only reads them has them."""
    with PostgresVault(postgres, create=True) as written, Vault(":memory:") as vault:
        both = [Workspace.open(dataset, vault=own) for own in (vault, written)]
        with written.transaction():
            for space in both:
                for system in SYSTEMS.values():
                    space.index_for([system], system.config().effective.signals | system.config().needs)
        with PostgresVault(postgres) as read:
            for name, system in SYSTEMS.items():
                searchers = [
                    Searcher(store, system.config(), both[0].embedder, clock=lambda: dataset.as_of)
                    for store in (vault, read)
                ]
                for at, query in enumerate(dataset.queries[:24]):
                    asked = Query(query.text, filters=FILTERS[at % len(FILTERS)])
                    here, there = (
                        [(hit.entry, hit.score, hit.signals) for hit in own.search(asked).hits]
                        for own in searchers
                    )
                    assert there == here, (name, query.text)


def test_words_are_the_lexemes_of_the_server(postgres, dataset):
    """What MoltNet's full text counts in memory, against to_tsvector of the server itself."""
    with connect(postgres) as server:
        if server.info.server_version >= 180_000:
            pytest.skip("PostgreSQL 18 stems by Snowball 3, which leaves the d of add; ours are the rules of 15")
        for entry in dataset.entries:
            text = moltnet_text(entry)
            found = server.execute(
                "SELECT lexeme FROM unnest(to_tsvector('english', %s)) ORDER BY lexeme COLLATE \"C\"", (text,)
            )
            assert sorted(tsvector(text)) == [word for (word,) in found]


# Writing


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
        assert count(postgres) == 2


def test_a_copy_follows_what_others_write(postgres):
    """Entries, vectors that are lost or kept, spaces made anew, models."""
    with PostgresVault(postgres, create=True) as one, PostgresVault(postgres) as other:
        one.upsert([Entry("a", text="x"), Entry("b", text="y"), Entry("c", text="z")])
        one.put_vectors(SPACE, ["a", "b"], rows((1, 2), (3, 4)))
        one.save_model("bought", "api", {"dim": 2}, {"w": b"\0\1"})
        other.refresh()
        assert other.vectors_of(SPACE, ["b"])["b"].tolist() == [3, 4]
        assert other.load_model("bought") == ("api", {"dim": 2}, {"w": b"\0\1"})

        one.upsert([Entry("a", text="new")])
        one.upsert([Entry("b", text="new")], keep_vectors=True)
        one.delete(["c"])
        other.refresh()
        assert [e.text for e in other.entries()] == ["new", "new"]
        assert list(other.vectors_of(SPACE, ["a", "b"])) == ["b"]

        with one.transaction():
            one.drop_space(SPACE)
            one.put_vectors(SPACE, ["a"], rows((1, 2, 3)))
        other.refresh()
        assert (other.spaces(), list(other.vectors_of(SPACE, ["a", "b"]))) == ([(SPACE, 3)], ["a"])
        other.upsert([Entry("d")])
        assert other.missing(SPACE) == ["b", "d"]


def test_of_what_a_transaction_did_with_vectors_the_end_counts(postgres):
    """Put twice, lost to a new text, deleted, of no entry at all."""
    with PostgresVault(postgres, create=True) as one, PostgresVault(postgres) as other:
        with one.transaction():
            one.upsert([Entry(id_, text="old") for id_ in "abc"])
            one.put_vectors(SPACE, ["a", "b", "c", "none"], rows((1, 2), (3, 4), (5, 6), (7, 8)))
            one.put_vectors(SPACE, ["a"], rows((9, 10)))
            one.upsert([Entry("a", text="new")], keep_vectors=True)
            one.upsert([Entry("b", text="new")])
            one.delete(["c"])
        other.refresh()
        found = other.vectors_of(SPACE, ["a", "b", "c", "none"])
        assert {id_: vector.tolist() for id_, vector in found.items()} == {"a": [9, 10]}


def test_writers_take_turns(postgres):
    """Four of them at once: each reads what the one before has left, so nothing is lost."""
    with PostgresVault(postgres, create=True) as first:
        first.upsert([Entry("count", importance=0.0)])

    def add():
        with PostgresVault(postgres) as own:
            for _ in range(10):
                with own.transaction():
                    [known] = own.get(["count"])
                    own.upsert([Entry("count", importance=known.importance + 1)])

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with PostgresVault(postgres) as last:
        assert last.get(["count"])[0].importance == 40


def test_a_snapshot_is_one_state_and_only_reads(postgres):
    with PostgresVault(postgres, create=True) as one, PostgresVault(postgres) as other:
        with other.snapshot():
            one.upsert([Entry("a")])
            other._look_at = 0.0
            assert (other.revision(), other.count()) == (other.revision(), 0)
            with pytest.raises(VaultError, match="snapshot only reads"):
                other.upsert([Entry("b")])
        other._look_at = 0.0
        other.revision()
        assert other.count() == 1


# Who sees what


def test_a_role_sees_its_tenants_and_nothing_of_others(postgres, reader):
    """Entries, vectors and counts; another role's tenant has no id, no word and no number in it."""
    index = KeywordIndex("sample", ("text",))
    with PostgresVault(postgres) as owner:
        owner.upsert(
            [
                Entry("1", text="apple", tenant="a"),
                Entry("2", text="apple pear", tenant="b"),
                Entry("3", text="pear", tenant="b", vault="shared"),
            ]
        )
        owner.put_vectors(SPACE, ["1", "2", "3"], rows((1, 0), (0, 1), (1, 1)))
        with PostgresVault(reader) as seen:
            assert (seen.restricted, owner.restricted) == (True, False)
            assert [e.id for e in seen.entries()] == ["1", "3"]
            assert seen.vectors(SPACE, EVERYTHING)[0] == ["1", "3"]
            assert seen.get(["2"]) == []
            before = [
                seen.keyword(index, "apple OR pear", [1.0], EVERYTHING, 9),
                seen.nearest(SPACE, rows((1, 1))[0], EVERYTHING, 9, True),
            ]
            for at in range(30):
                owner.upsert([Entry(f"x{at * 5 % 9}", text=f"apple {at}", tenant="b")])
                seen.refresh()
                assert before == [
                    seen.keyword(index, "apple OR pear", [1.0], EVERYTHING, 9),
                    seen.nearest(SPACE, rows((1, 1))[0], EVERYTHING, 9, True),
                ]
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
    own = [Entry(f"a{at}", text=f"deploy rotate keys {at}", tenant="a") for at in range(12)]
    answers = []
    for word in ("zebra", "yak"):
        with PostgresVault(postgres) as owner, connect(reader) as seen:
            owner.upsert([*own, *(Entry(f"b{at}", text=f"{word} deploy {at}", tenant="b") for at in range(12))])
            _renew(owner, None)
            assert seen.execute("SELECT count(*) FROM steelyard.models").fetchone() == (0,)
            assert seen.execute("SELECT count(*) FROM steelyard.model_arrays").fetchone() == (0,)
        with open_searcher([reader], RankedBy("vector"), 5) as searcher:
            answers.append([(hit.entry.id, hit.score) for hit in searcher.search("rotate keys").hits])
    assert answers[0] == answers[1] and len(answers[0]) == 5


# Where the copy lies

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
        assert files == {"copy.db": 0o600, "copy.db-wal": 0o600, "copy.db-shm": 0o600}
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

    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

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


# Servers that go away, and addresses


def test_a_lost_connection_is_made_again(postgres):
    """Reads go on; a write in the middle of which it broke is kept nowhere."""
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
    with PostgresVault(postgres, create=True) as store, connect(postgres) as admin:
        store.upsert([Entry("a")])
        admin.execute(cut)
        store.refresh()
        assert store.count() == 1
        with pytest.raises(MachineError, match="run the same"), store.transaction():
            store.upsert([Entry("b")])
            admin.execute(cut)
        assert store.count() == 1
        assert store.upsert([Entry("b")]) == 1
        assert count(postgres) == 2


def test_an_address_holds_no_secret():
    """Refused before anything is asked of the network, and not repeated."""
    pytest.importorskip("psycopg")
    for address in ("postgresql://me:hunter2@localhost/x", "postgresql://localhost/x?password=hunter2"):
        with pytest.raises(ConfigError, match="holds a secret") as raised:
            open_vault(address)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        open_vault("postgresql://[/x")


def test_what_is_no_store_is_refused(postgres):
    """A database without one, one of a newer version, and a view in the place of a table."""
    with pytest.raises(VaultError, match="steelyard index DATASET"):
        PostgresVault(postgres)
    PostgresVault(postgres, create=True).close()
    with connect(postgres) as admin:
        admin.execute("CREATE VIEW steelyard.more AS SELECT 1")
        with pytest.raises(VaultError, match="more than tables"):
            PostgresVault(postgres)
        admin.execute("DROP VIEW steelyard.more")
        admin.execute("UPDATE steelyard.meta SET version = 9")
        with pytest.raises(VaultError, match="schema 9"):
            PostgresVault(postgres)


def test_the_commands_take_an_address(postgres, tmp_path):
    """index, search, get, import: what they print of a file they print of a database."""

    def run(*words):
        found = CliRunner().invoke(main, [*words, "--json"])
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    file = str(tmp_path / "starter.db")
    for place in (file, postgres):
        counts = run("index", str(STARTER), place)
        assert (counts["entries"], counts["changed"]) == (131, 131)
    assert run("index", str(STARTER), postgres)["changed"] == 0
    there, here = (run("search", place, "rotate the tokens", "--system", "plain") for place in (postgres, file))
    assert there["hits"] == here["hits"]
    run("import", postgres, str(tmp_path / "again"))
    assert list(load(tmp_path / "again").entries) == sorted(load(STARTER).entries, key=lambda entry: entry.id)
