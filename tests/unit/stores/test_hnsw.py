"""pgvector's HNSW index beside the exact search: who may use it, what it proposes, and by which connections.

As tests/unit/stores/test_postgres.py it needs a server (STEELYARD_POSTGRES). A search whose breadth is larger than
the graph visits every vector of it, so its lists are the exact ones, to the bit.
"""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import RecordedEmbedder
from steelyard.extensions.postgres import PostgresVault
from steelyard.extensions.postgres.server import Server
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.stores.base import Space
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault, open_vault
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.extensions.serve.server import Served

STARTER = Path(__file__).resolve().parents[3] / "qrels" / "starter"
RECIPE = find_system("vector").reading.recipe
SPACE = Space("model", "text", RECIPE)
COUNT, DIM, ALL = 300, 8, 1000
EVEN = Filters.of({"project": "even"})
RARE = Filters.of({"category": "rare"})
OURS = "application_name = 'steelyard' AND datname = current_database()"
ENDS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
ROLE = f"steelyard_agent_{os.getpid()}"


def connect(address):
    psycopg = pytest.importorskip("psycopg")
    return psycopg.connect(address, autocommit=True)


def vectors(seed, count=COUNT):
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


@pytest.fixture
def filled(postgres):
    """The address of 300 entries with vectors and an index of them."""
    with PostgresVault(postgres, create=True) as store:
        kinds = {0: "even", 1: "odd"}
        store.upsert(
            Entry(f"e{n:03d}", text=f"word{n}", project=kinds[n % 2], category="rare" if n % 30 == 0 else "")
            for n in range(COUNT)
        )
        store.put_vectors(SPACE, [f"e{n:03d}" for n in range(COUNT)], vectors(1))
        store.make_hnsw()
    return postgres


@pytest.fixture
def agent(filled):
    """The address of a role that sees one tenant."""
    with connect(filled) as admin:
        admin.execute(f"DROP ROLE IF EXISTS {ROLE}")
        admin.execute(f"CREATE ROLE {ROLE} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA steelyard TO {ROLE}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA steelyard TO {ROLE}")
        scheme, _, rest = filled.partition("://")
        yield f"{scheme}://{ROLE}@{rest.rpartition('@')[2]}"
        admin.execute(f"DROP OWNED BY {ROLE}")
        admin.execute(f"DROP ROLE {ROLE}")


def found(store, vector, depth=10, filters=EVERYTHING, first=True, metric="cosine"):
    return store.nearest(SPACE, vector, filters, depth, first, metric)


# What it finds


def texts(dataset):
    return [query.text for query in dataset.queries], [entry.id for entry in dataset.entries]


def test_what_the_index_proposes_has_the_scores_of_the_copy(filled):
    """The lists of the exact search, in another opened store, with filters before and after the cut."""
    with open_vault(filled, hnsw=ALL) as store, open_vault(filled) as exact:
        for vector in vectors(2, 10):
            for asked in ({}, {"filters": EVEN}, {"filters": EVEN, "first": False}, {"metric": "l2"}):
                assert found(store, vector, **asked) == found(exact, vector, **asked)


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


@pytest.mark.parametrize("breadth", [1, 40])
def test_a_list_is_as_long_as_the_exact_one(filled, breadth):
    """One entry in 30 passes the filter, 4 x 10 proposals are too few for ten of them; and more than there are."""
    with open_vault(filled, hnsw=breadth) as store, open_vault(filled) as exact:
        for vector in vectors(4, 10):
            assert found(store, vector, filters=RARE) == found(exact, vector, filters=RARE)
            assert found(store, vector, depth=2 * COUNT) == found(exact, vector, depth=2 * COUNT)
            assert len(found(store, vector, depth=100)) == 100


def test_what_the_copy_does_not_have_is_dropped(filled):
    """An entry that another process is writing: the copy of one state searches exactly."""
    with open_vault(filled, hnsw=ALL) as store, open_vault(filled) as other:
        [probe] = vectors(5, 1)
        before = found(store, probe)
        with store.snapshot():
            other.upsert([Entry("new")])
            other.put_vectors(SPACE, ["new"], probe[None])
            assert found(store, probe) == before
        store.refresh()
        assert found(store, probe)[0].id == "new"


def test_numbers_beyond_half_precision_keep_their_direction(postgres):
    """65,504 is the largest, 6e-8 the smallest: what is indexed and asked has length 1."""
    with PostgresVault(postgres, create=True) as store:
        store.upsert(Entry(f"e{n:03d}") for n in range(COUNT))
        scales = np.where(np.arange(COUNT) % 2, 1e5, 1e-5).astype(np.float32)[:, None]
        store.put_vectors(SPACE, [f"e{n:03d}" for n in range(COUNT)], scales * vectors(1))
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
        store.drop_space(SPACE)
        store.put_vectors(SPACE, ["e001"], vectors(1, 1))
        with pytest.raises(ConfigError, match="HNSW index"):
            open_vault(filled, hnsw=40)
        store.put_vectors(Space("model", "l0", RECIPE), ["e001"], vectors(1, 1))
        assert list(store.make_hnsw()) == [SPACE]
        [after] = admin.execute(names).fetchall()
        assert before != after


# What is said, and refused


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


def test_a_recording_is_refused(filled):
    with open_vault(filled, hnsw=100) as store, pytest.raises(ConfigError, match="recording is exact"):
        searcher(store).record([Query("what is near")], {"vector"}, 10, "")


def test_whom_the_index_would_tell_of_others_is_refused(filled, agent):
    """To search by it and to make it."""
    with pytest.raises(ConfigError, match="through the vectors"):
        open_vault(agent, hnsw=100)
    with open_vault(agent) as seen, pytest.raises(ConfigError, match="through the vectors"):
        seen.make_hnsw()


def test_what_cannot_be_is_refused(filled, postgres, tmp_path, monkeypatch):
    for breadth in (0, 1001):
        with pytest.raises(ConfigError, match=f"hnsw is {breadth}; ef_search of pgvector is 1 to 1000"):
            open_vault(filled, hnsw=breadth)
    with pytest.raises(ConfigError, match="of a database"):
        open_vault(tmp_path / "v.db", create=True, hnsw=40)
    assert list(tmp_path.glob("v.db*")) == []
    with open_vault(filled) as store:
        store.put_vectors(Space("wide", "text", "{text}"), ["e001"], np.ones((1, 4001), np.float32))
        with pytest.raises(ConfigError, match="4001 numbers; pgvector's"):
            store.make_hnsw()
        monkeypatch.setattr(store._server, "pgvector", (0, 7, 4))
        with pytest.raises(ConfigError, match=r"pgvector 0\.7\.4; HNSW"):
            store.search_by(40)
        for space, _ in store.spaces():
            store.drop_space(space)
        monkeypatch.setattr(store._server, "pgvector", (0, 8))
        assert store.make_hnsw() == {}
        with pytest.raises(ConfigError, match=r"DATASET .* --hnsw"):
            store.search_by(40)


# Connections


def test_threads_that_search_at_once_have_a_connection_each(filled):
    """Kept for the next ones, made anew when the server let go of them, and ended with the store."""
    open_ones = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS}"
    probes = vectors(8, 4)
    together = threading.Barrier(4)
    lists = {}

    def search(store, at):
        with store._server.asked("SELECT 1"):
            together.wait(60)
        lists[at] = found(store, probes[at])

    def all_of_them(store):
        lists.clear()
        threads = [threading.Thread(target=search, args=(store, at)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return dict(lists)

    with open_vault(filled, hnsw=ALL) as store, connect(filled) as admin:
        with open_vault(filled) as exact:
            expected = {at: found(exact, probe) for at, probe in enumerate(probes)}
        assert all_of_them(store) == expected
        assert admin.execute(open_ones).fetchone() == (4,)
        assert all_of_them(store) == expected
        assert admin.execute(open_ones).fetchone() == (4,)
        admin.execute(ENDS)
        assert all_of_them(store) == expected
        store.close()
        for _ in range(1000):
            if admin.execute(open_ones).fetchone() == (0,):
                break
        assert admin.execute(open_ones).fetchone() == (0,)


def test_a_connection_that_is_in_use_while_settings_change_is_not_used_again(filled, monkeypatch):
    """Also one that another thread takes while the idle ones are being closed."""
    psycopg = pytest.importorskip("psycopg")
    ended, others = psycopg.Connection.close, []

    def close(own):
        if not others:
            others.append(server.asked("SELECT 1"))
            others[0].__enter__()
        ended(own)

    server = Server(filled, create=False)
    with server.asked("SELECT 1"), server.asked("SELECT 1"):
        pass
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "close", close)
        server.configure(("work_mem = '5MB'",))
    others[0].__exit__(None, None, None)
    with server.asked("SHOW work_mem") as (_, rows):
        assert rows.fetchone() == ("5MB",)
    server.close()


# Commands


def run(*words, code=0):
    done = CliRunner().invoke(main, [*words])
    assert done.exit_code == code, done.output
    return done


def test_the_commands_make_it_measure_it_and_search_by_it(postgres, tmp_path, monkeypatch):
    """131 entries: lists of 100 visit nearly all, and half precision may take another one for the last place."""
    monkeypatch.setattr("steelyard.extensions.postgres.measured.SAMPLE", 20)
    counts = json.loads(run("index", str(STARTER), postgres, "--hnsw", "--json").stdout)
    assert {record["recipe"] for record in counts["hnsw"]} == {
        system.reading.recipe for system in map(find_system, ("vector", "moltnet", "soleri", "echovault"))
    }
    for record in counts["hnsw"]:
        assert record["probes"] == "20 queries of the data set" and record["bytes"] > 0
        assert [row["ef_search"] for row in record["rows"]] == [None, 40, 100, 200, 400]
        assert all(row["recall@10"] == 1 and row["recall@100"] > 0.99 for row in record["rows"])
    text = run("index", str(STARTER), postgres, "--hnsw").stdout
    assert "ef_search  recall@10" in text
    asked = ("search", postgres, "rotate keys", "--system", "vector", "--json")
    exact, near = json.loads(run(*asked).stdout), json.loads(run(*asked, "--set", "hnsw=1000").stdout)
    assert near["hits"] == exact["hits"]
    assert (near["notes"], exact["notes"]) == (
        ["vectors were searched by HNSW with ef_search 1000, which may miss some of the nearest"],
        [],
    )
    refused = run("search", postgres, "keys", "--set", "hnsw=100", "--scope", "vault=notes", code=2)
    assert "--hnsw or --scope" in refused.stderr
    assert "leave --hnsw out" in run("index", str(STARTER), str(tmp_path / "v.db"), "--hnsw", code=2).stderr
    assert not (tmp_path / "v.db").exists()


def test_a_server_for_agents_searches_by_it(filled, agent):
    """As `steelyard serve --hnsw`; what is served to a role with a part is refused when it starts."""
    opened = Served(filled, by="vector", hnsw=ALL).opened()
    assert opened.file.approximate([SPACE]) == "HNSW with ef_search 1000"
    opened.close()
    with pytest.raises(ConfigError, match="all tenants"):
        Served(agent, by="vector", hnsw=ALL).opened()
