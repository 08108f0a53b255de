"""Stores in a running PostgreSQL: the server of the tests, or that of STEELYARD_POSTGRES.

MoltNet's needs the extension vector there, and psql here, which loads the dump that the program's own schema made.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard.base.extras import installing
from steelyard.stores.opened import is_address
from steelyard_eval.extensions.importers import import_store, load_store, refresh
from steelyard_eval.extensions.importers.postgres import LiveDatabase, connected

HERE = find_spec("psycopg") is not None
STORE = """
    CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value jsonb NOT NULL, created_at timestamptz,
        updated_at timestamptz, expires_at timestamptz, ttl_minutes int, PRIMARY KEY (prefix, key));
    CREATE TABLE store_vectors (prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding text);
"""
"""The tables as PostgresStore.setup of langgraph-checkpoint-postgres 3.2 makes them, vectors as their text."""
ITEMS = [
    ("memories.team", "a", {"text": "Seat holds use advisory locks", "tags": ["postgres"]}, 30),
    ("uni.Ærø", "kéy\twith tab", {"text": "line\nbreak \\ back\tslash \u2028 emoji 🎉 \\N", "title": "\\."}, None),
    ("z", "last", {"text": "third"}, None),
]


@pytest.fixture
def database(monkeypatch, tmp_path, postgres_server):
    """A fresh database, its address, and a connection that may write."""
    import psycopg

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = f"steelyard_test_{os.getpid()}"
    place, mark, options = postgres_server.partition("?")
    address = f"{place.rpartition('/')[0]}/{name}{mark}{options}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}")
        admin.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(address, autocommit=True) as connection:
                yield address, connection
        finally:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def fill(connection, vectors=2):
    connection.execute(STORE)
    for at, (prefix, key, value, ttl) in enumerate(ITEMS):
        row = (prefix, key, json.dumps(value), f"2026-03-0{at + 1} 10:00:00.25+02", ttl)
        connection.execute("INSERT INTO store VALUES (%s, %s, %s, %s, now(), NULL, %s)", row)
        if at < vectors:
            connection.execute("INSERT INTO store_vectors VALUES (%s, %s, '$', '[0.5,-0.25,1]')", (prefix, key))


def test_every_item_of_langgraph_is_what_was_put(database, tmp_path):
    address, connection = database
    fill(connection)
    data = load_store(address)

    assert [(entry.uri, entry.text, entry.title) for entry in data.entries] == [
        (f"{prefix}/{key}", value["text"], value.get("title", "")) for prefix, key, value, _ in ITEMS
    ]
    assert data.entries[0].created_at == 1772352000.25  # 2026-03-01T08:00:00.25Z
    assert data.entries[0].extra["ttl_minutes"] == 30
    assert import_store(address, tmp_path / "mine").changed
    connection.execute("UPDATE store SET value = value WHERE key = 'a'")  # another place in the file, the same row
    assert not refresh(tmp_path / "mine").changed
    connection.execute("DELETE FROM store WHERE key = 'a'")
    assert refresh(tmp_path / "mine").counts == {"entries": 2}


def test_vectors_come_with_them(database, tmp_path):
    address, connection = database
    fill(connection, vectors=3)

    assert import_store(address, tmp_path / "mine").models == ("langgraph",)
    assert np.load(tmp_path / "mine" / "corpus.langgraph.f16.npy").tolist() == [[0.5, -0.25, 1]] * 3


def test_nothing_can_be_written_and_views_are_not_read(database):
    import psycopg

    address, connection = database
    connection.execute(
        "CREATE TABLE kept (at int); CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT ''x'''"
    )
    connection.execute("CREATE VIEW store AS SELECT f() AS prefix, f() AS key, f() AS value")
    with pytest.raises(ConfigError, match="not the tables"):
        load_store(address)
    with pytest.raises(MachineError, match="read-only transaction"), connected(address) as db:
        db._connection.execute("INSERT INTO public.kept VALUES (1)")
    with psycopg.connect(address) as again:
        assert again.execute("SELECT count(*) FROM kept").fetchone() == (0,)


CAST = """
    CREATE TYPE odd AS (x int);
    CREATE FUNCTION odd_text(x odd) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'evil ran'; END $$;
    CREATE CAST (odd AS text) WITH FUNCTION odd_text(odd);
    ALTER TABLE store ALTER COLUMN key TYPE odd USING ROW(1)::odd;
"""
POLICY = """
    CREATE FUNCTION odd_row(x text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'evil ran'; END $$;
    CREATE POLICY p ON store USING (odd_row(key)); ALTER TABLE store ENABLE ROW LEVEL SECURITY;
    DROP ROLE IF EXISTS steelyard_reader; CREATE ROLE steelyard_reader LOGIN;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO steelyard_reader;
"""
OPERATOR = """
    CREATE FUNCTION odd_oid(a oid, b oid) RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'evil ran'; END $$;
    CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = odd_oid);
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$;
"""
CHILD = """
    CREATE EXTENSION IF NOT EXISTS postgres_fdw;
    CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'evil.invalid', port '1');
    CREATE USER MAPPING FOR PUBLIC SERVER far;
    CREATE FOREIGN TABLE beyond () INHERITS (store) SERVER far;
"""


@pytest.mark.parametrize("attack", [CAST, POLICY, OPERATOR, CHILD], ids=["cast", "policy", "operator", "child"])
def test_what_a_database_holds_is_never_run_or_followed(database, attack):
    """A type's cast, the policy of a table, an operator before PostgreSQL's own, a table on another server."""
    address, connection = database
    fill(connection)
    try:
        connection.execute(attack)
    except Exception as error:
        pytest.skip(f"the attack cannot be made here: {error}")
    if attack is POLICY:
        address = address.replace("//me@", "//steelyard_reader@")
    try:
        load_store(address)
    except (MachineError, DataError) as error:
        assert not any(word in str(error) for word in ("evil ran", "evil.invalid"))
        assert attack is not POLICY or "row-level security" in str(error)


def test_what_is_read_is_one_moment(database):
    address, connection = database
    fill(connection)
    with connected(address) as db:
        connection.execute("DELETE FROM store")
        assert len(db.rows("store", ("prefix", "key"))) == len(ITEMS)


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
def test_moltnet_is_read_as_its_dump_is(database, store_root):
    address, connection = database
    if connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone() is None:
        pytest.skip("the server has no extension vector")
    dump = store_root / "moltnet" / "moltnet.sql"
    lines = [line for line in dump.read_text().split("\n") if "uuid-ossp" not in line]
    subprocess.run(["psql", "-q", address], input="\n".join(lines), text=True, capture_output=True, check=False)
    running, dumped = load_store(address), load_store(dump)

    assert len(running.entries) == 28
    by_id = {entry.id: entry for entry in dumped.entries}
    for entry in running.entries:
        ours, theirs = (sorted(one.relations, key=str) for one in (entry, by_id[entry.id]))
        assert ours == theirs
        assert replace(entry, relations=()) == replace(by_id[entry.id], relations=())


def test_a_database_that_cannot_be_reached_is_one_message(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "never-to-be-seen")
    with pytest.raises(MachineError, match="cannot be read") as caught:
        load_store("postgresql://nobody@127.0.0.1:1/none")
    assert "never-to-be-seen" not in str(caught.value)


@pytest.mark.skipif(not HERE, reason="psycopg is missing")
@pytest.mark.parametrize("address", ["postgresql://me:hunter22@h/db", "postgres://h/db?password=hunter22"])
def test_a_password_in_the_address_is_refused_and_not_shown(address, tmp_path):
    with pytest.raises(ConfigError, match="set PGPASSWORD") as caught:
        import_store(address, tmp_path / "mine")
    assert "hunter22" not in str(caught.value)
    assert not (tmp_path / "mine").exists()


@pytest.mark.skipif(HERE, reason="psycopg is here")
def test_without_the_extra_it_is_named(tmp_path):
    with pytest.raises(MachineError, match=re.escape(installing("postgres"))):
        import_store("postgresql://me@h/db", tmp_path / "mine")


def test_a_folder_of_that_name_is_no_address():
    assert not is_address("postgresql") and is_address("postgres://h/db")


def test_a_kind_that_has_no_tables_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="moltnet, langgraph"):
        import_store("postgresql://me@h/db", tmp_path / "mine", "echovault")


@pytest.mark.parametrize(
    ("have", "matched"),
    [
        ({"notes": ["id", "text"], "tags": []}, True),
        ({"notes": ["id", "text", "more"], "tags": [], "others": []}, True),
        ({"notes": ["id"], "tags": []}, False),
        ({"notes": ["id", "text"]}, False),
    ],
)
def test_a_kind_is_known_by_its_tables_and_columns(have, matched):
    needed = {"notes": ("id", "text"), "tags": ()}
    assert LiveDatabase.holds(SimpleNamespace(columns=have), needed) is matched
