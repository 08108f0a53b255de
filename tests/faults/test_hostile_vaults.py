"""Vaults made by somebody who means harm: valid SQLite files in which nothing is what it should be.

The first two are attacks that succeeded: they deleted another vault's entries and wrote a file where they liked.
"""

import itertools

import apsw
import numpy as np
import pytest
import sqlite_vec
from small import one_message, steelyard

from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault, guard
from steelyard.systems import SYSTEMS, analyses, keyword_indexes

SPACE = Space("lsa", "text", "{text}")
INDEX = next(iter(keyword_indexes(SYSTEMS.values())))
REFUSED = (
    r"is not a vault as Steelyard writes it \(.*\); restore a copy of it, or index the data set into a new vault"
)


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "stranger.db")


@pytest.fixture
def other(tmp_path):
    return make(tmp_path / "mine.db")


def make(path):
    with Vault(path, create=True) as vault:
        vault.upsert([Entry("a", text="token", created_at=1.0), Entry("b", text="other token")])
        for index in keyword_indexes(SYSTEMS.values()):
            vault.ensure_index(index)
        vault.put_vectors(SPACE, ["a"], np.ones((1, 4), dtype=np.float32))
    return path


def tamper(path, *statements):
    """Run any SQL on the file, as somebody with another program could."""
    for sql in statements:
        db = apsw.Connection(str(path))
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.create_collation("evil", lambda a, b: (a > b) - (a < b))
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
        db.execute(sql)
        db.close()


class TestSqlOfTheFile:
    def test_a_space_that_is_sql_runs_nowhere(self, path, other, tmp_path):
        wish = (
            f"1 WHERE embedding MATCH ? AND k = ?) SELECT 'x', 0.5, 1 FROM near; COMMIT; ATTACH '{other}' AS o; "
            f"DELETE FROM o.entries; VACUUM INTO '{tmp_path / 'written'}'; BEGIN; --"
        ).replace("'", "''")
        tamper(
            path,
            "DROP TABLE spaces",
            "CREATE TABLE spaces(space TEXT, model TEXT, layer TEXT, recipe TEXT, dim INTEGER)",
            f"INSERT INTO spaces VALUES('{wish}', 'lsa', 'text', '{{text}}', 4)",
        )
        searched = ["search", path, "token", "--system", "vector"]
        for words in (searched, ["vault", "list", path], ["index", path, "--rebuild"]):
            assert "'spaces' is missing" in one_message(steelyard(*words), 2)
        with Vault(other) as vault:
            assert vault.count() == 2
        assert not (tmp_path / "written").exists()

    def test_an_index_whose_name_is_sql_runs_nowhere(self, path, tmp_path):
        name = f"content_insert; COMMIT; VACUUM INTO '{tmp_path / 'written'}'; BEGIN; --".replace("'", "''")
        tamper(path, f"UPDATE keyword_indexes SET name = '{name}' WHERE name = 'content'")
        assert "vault as Steelyard" in one_message(steelyard("index", path, "--rebuild"), 2)
        assert not (tmp_path / "written").exists()


FOREIGN = {
    "a trigger": ["CREATE TRIGGER evil AFTER INSERT ON entries BEGIN DELETE FROM entries; END"],
    "a trigger of a known name": [
        "DROP TRIGGER fts_content_insert",
        "CREATE TRIGGER fts_content_insert AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    ],
    "a view": ["CREATE VIEW evil AS SELECT 1"],
    "entries as an endless view": [
        "ALTER TABLE entries RENAME TO kept",
        "CREATE VIEW entries AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM n) SELECT id FROM n",
    ],
    "a column": ["ALTER TABLE entries ADD COLUMN evil TEXT"],
    "a generated column": ["ALTER TABLE models ADD COLUMN evil TEXT AS (hex(zeroblob(100000000)))"],
    "a collation": [
        "DROP TABLE models",
        "CREATE TABLE models(name TEXT COLLATE evil PRIMARY KEY, kind, settings)",
    ],
    "an index on an expression": ["CREATE INDEX evil ON entries(lower(text))"],
    "a partial index": ["CREATE INDEX evil ON entries(id) WHERE id > 'a'"],
    "a table": ["CREATE TABLE evil(x)"],
    "another virtual table": ["CREATE VIRTUAL TABLE evil USING fts4(x)"],
    "a vector table of no space": ["CREATE VIRTUAL TABLE vec_9 USING vec0(embedding float[4])"],
    "a missing vector table": ["DROP TABLE vec_1"],
    "an index with another tokenizer": ["UPDATE keyword_indexes SET tokenizer = 'trigram'"],
    "an index with a tokenizer that is none": ["UPDATE keyword_indexes SET tokenizer = 'qorter'"],
    "an index of fields that are none": ["UPDATE keyword_indexes SET fields = '[\"rowid\"]'"],
    "an index of fields nested without end": [
        "UPDATE keyword_indexes SET fields = replace(hex(zeroblob(2000)), '00', '[')"
    ],
    "an index of no list": ["UPDATE keyword_indexes SET fields = '{}'"],
    "an index of no JSON": ["UPDATE keyword_indexes SET fields = 'x'"],
    "a space of another dimension": ["UPDATE spaces SET dim = 5"],
    "a space of no dimension": ["UPDATE spaces SET dim = -1"],
    "a space of another number": ["UPDATE spaces SET space = -1"],
    "a shadow table with an expression": [
        'UPDATE sqlite_schema SET sql = \'CREATE TABLE "vec_1_rowids"(rowid INTEGER PRIMARY KEY AUTOINCREMENT,id,'
        "chunk_id INTEGER,chunk_offset INTEGER AS (hex(zeroblob(9))))' WHERE name = 'vec_1_rowids'"
    ],
    "a shadow view": ["DROP TABLE fts_content_config", "CREATE VIEW fts_content_config AS SELECT 1 AS k, 4 AS v"],
    "a table on the pages of another": [
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "
        "WHERE name = 'vec_1_vector_chunks00') WHERE name = 'entries'"
    ],
    "two tables with each other's pages": [
        "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema "
        "WHERE name IN ('entries', 'models')) - rootpage WHERE name IN ('entries', 'models')",
        "INSERT INTO entries(rowid, id) VALUES(9, 'x')",
    ],
    "a schema version below 0": ["PRAGMA user_version = -5"],
    "a schema version of an empty file": ["PRAGMA user_version = 0"],
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_steelyard_does_not_write_is_refused_at_the_door(path, foreign):
    tamper(path, *FOREIGN[foreign])
    before = path.read_bytes()

    for words in (["search", path, "token"], ["index", path, "--rebuild"]):
        assert "data set into" in one_message(steelyard(*words), 2)
    assert path.read_bytes() == before


DENIED = (
    *("ATTACH ':memory:' AS o", "VACUUM", "VACUUM INTO '/tmp/x'", "ANALYZE", "UPDATE sqlite_schema SET sql = ''"),
    *("CREATE VIEW v AS SELECT 1", "CREATE TEMP TABLE t(x)", "CREATE TABLE t(x)", "SELECT load_extension('x')"),
    *("CREATE VIRTUAL TABLE fts_x USING fts4(x)", "PRAGMA writable_schema = on", "SELECT printf('x')"),
    *("PRAGMA temp_store_directory = '/'", "SELECT randomblob(1)", "SELECT * FROM pragma_database_list"),
    *("INSERT INTO fts_content_data VALUES(1, x'00')", "ALTER TABLE entries ADD COLUMN x TEXT"),
)


class TestTheConnection:
    @pytest.fixture
    def vault(self, path):
        with Vault(path) as vault:
            yield vault

    @pytest.mark.parametrize("sql", DENIED)
    def test_what_no_statement_of_ours_needs_is_denied(self, vault, sql):
        with pytest.raises(VaultError, match="is damaged"):
            vault._db.run(sql)

    def test_one_statement_a_call(self, vault):
        with pytest.raises(ValueError, match="than one statement"):
            vault._db.run("SELECT 1; DELETE FROM entries")
        assert vault.count() == 2

    def test_a_statement_that_never_ends_is_broken_off(self, vault):
        """Its budget goes by the size of the file: 50 million steps and 50 a byte."""
        join = " JOIN ".join(f"json_each('[{','.join('1' * 90)}]') t{at}" for at in range(6))
        with pytest.raises(VaultError, match="is damaged"):
            vault._db.run(f"SELECT count(*) FROM {join}")

    def test_a_statement_of_few_and_slow_steps_is_broken_off(self, vault, monkeypatch):
        """By the clock: 60 seconds and one a megabyte. Here each look at the clock finds 40 seconds gone."""
        ticks = itertools.count(0, 40)
        monkeypatch.setattr(guard, "monotonic", lambda: float(next(ticks)))
        join = " JOIN ".join(f"json_each('[{','.join('1' * 90)}]') t{at}" for at in range(3))
        with pytest.raises(VaultError, match="is damaged"):
            vault._db.run(f"SELECT count(*) FROM {join}")

    def test_the_time_between_two_rows_is_the_caller_s(self, vault, monkeypatch):
        """A clock that runs only while nobody is inside SQLite never ends a statement."""
        now = 0.0
        monkeypatch.setattr(guard, "monotonic", lambda: now)
        numbers = f"json_each('[{','.join('1' * 90)}]')"
        for _ in vault._db.each(f"SELECT a.value FROM {numbers} a JOIN {numbers} b JOIN {numbers} c LIMIT 9000"):
            now += 100.0
        assert not vault._db.exhausted


def tamper_types(path, table, statement):
    """Put values into a strict table that its columns refuse."""
    db = apsw.Connection(str(path))
    [(rules,)] = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,))
    db.close()
    without = rules.replace(" STRICT", "").replace("NOT NULL", "")
    change = "UPDATE sqlite_schema SET sql = '{}' WHERE name = '{}'"
    tamper(
        path,
        change.format(without.replace("'", "''"), table),
        statement,
        change.format(rules.replace("'", "''"), table),
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_id_of_bytes_is_no_fault_of_ours(path, system):
    tamper_types(path, "entries", "UPDATE entries SET id = x'ff' WHERE id = 'b'")

    assert steelyard("search", path, "token", "--system", system).exit_code in (0, 2)


READS = {
    "places": lambda vault: list(vault.places()),
    "missing": lambda vault: vault.missing(Space("other", "text", "{text}")),
    "unembedded": lambda vault: vault.unembedded([], EVERYTHING),
    "vectors": lambda vault: vault.vectors(SPACE, EVERYTHING),
    "nearest": lambda vault: vault.nearest(SPACE, np.ones(4, dtype=np.float32), EVERYTHING, 2, filter_first=True),
    "keywords": lambda vault: vault.keyword(INDEX, "token", (1.0,) * len(INDEX.fields), EVERYTHING, 2),
}


@pytest.mark.parametrize("what", READS)
def test_what_gives_ids_refuses_bytes(path, what):
    with Vault(path) as vault:
        vault.put_vectors(SPACE, ["b"], np.ones((1, 4), dtype=np.float32))
    tamper_types(path, "entries", "UPDATE entries SET id = x'ff', uri = x'ff' WHERE id = 'b'")

    with Vault(path) as vault, pytest.raises(VaultError, match="holds bytes where"):
        READS[what](vault)


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ("x'ff', 'a', 'supports', 1.0", "it holds bytes where str belongs"),
        ("'b', 'a', 'supports', 'x'", "it holds str where NoneType or float belongs"),
    ],
)
def test_relations_refuse_other_types(path, values, odd):
    tamper_types(path, "edges", f"INSERT INTO edges VALUES({values})")

    with Vault(path) as vault, pytest.raises(VaultError, match=odd):
        vault.edges(["a"])


WORDS = {
    "entries of text": ("word_indexes", "UPDATE word_indexes SET entries = ''"),
    "lengths that are a number": ("word_indexes", "UPDATE word_indexes SET lengths = 1"),
    "a revision of bytes": ("word_indexes", "UPDATE word_indexes SET revision = x'ff'"),
    "no revision": ("word_indexes", "UPDATE word_indexes SET revision = NULL"),
    "places of text": ("postings", "UPDATE postings SET entries = 'abcd'"),
    "places that are a number": ("postings", "UPDATE postings SET entries = 1"),
    "places that are cut off": ("postings", "UPDATE postings SET entries = x'00'"),
    "positions that are a number": ("postings", "UPDATE postings SET positions = 1"),
}


@pytest.mark.parametrize("system", ["bm25", "moltnet", "soleri"])
@pytest.mark.parametrize("odd", WORDS)
def test_stored_words_of_other_types_are_damage(tmp_path, monkeypatch, odd, system):
    monkeypatch.setattr("steelyard.stores.sqlite.words.WORTH_STORING", 0)
    path = tmp_path / "stranger.db"
    with Vault(path, create=True) as vault:
        vault.upsert([Entry("a", text="token"), Entry("b", text="other token")])
        vault.ensure_words(analyses(SYSTEMS.values()))
    tamper_types(path, *WORDS[odd])

    assert steelyard("search", path, "token", "--system", system).exit_code in (0, 2)


def test_a_vector_of_zeros_is_damage(path):
    with Vault(path) as vault:
        vault.put_vectors(SPACE, ["b"], np.ones((1, 4), dtype=np.float32))
    tamper(path, "UPDATE vec_1 SET embedding = zeroblob(16) WHERE rowid = 1")

    with Vault(path) as vault, pytest.raises(VaultError, match="holds NoneType where"):
        READS["nearest"](vault)


BOOKKEEPING = {
    "no revision": "DELETE FROM meta",
    "a revision that is no number": "UPDATE meta SET value = 'x'",
    "a revision in other digits": "UPDATE meta SET value = '\u0661'",
    "a revision below 0": "UPDATE meta SET value = '-1'",
    "a huge revision": f"UPDATE meta SET value = '{'9' * 5000}'",
    "settings that are a list": "INSERT INTO models VALUES('lsa', 'lsa', '[]')",
    "settings that are no JSON": "INSERT INTO models VALUES('lsa', 'api', '{')",
    "settings of text": "INSERT INTO models VALUES('lsa', 'api', '\"x\"')",
    "settings of odd kinds": "INSERT INTO models VALUES('x', 'api', '{\"provider\": [], \"dimension\": \"x\"}')",
    "an unknown kind of model": "INSERT INTO models VALUES('lsa', '\x1b[31m', '{}')",
    "an infinite date": "UPDATE entries SET created_at = 9e999",
    "a date beyond all calendars": "UPDATE entries SET created_at = 1e300, valid_until = 1e18",
    "an infinite number": "UPDATE entries SET importance = -9e999",
    "an id with a separator in it": "UPDATE entries SET id = 'a' || char(31) || 'b' WHERE id = 'a'",
    "an id with a line break": "UPDATE entries SET id = 'a' || char(10) WHERE id = 'a'",
    "an empty id": "UPDATE entries SET id = '' WHERE id = 'a'",
    "tags that are numbers": "UPDATE entries SET tags = '[1]'",
    "tags that are an object": "UPDATE entries SET tags = '{\"a\": 1}'",
    "tags that are text": "UPDATE entries SET tags = '\"ab\"'",
    "relations of odd shapes": "UPDATE entries SET relations = '[[1, 2], 3]'",
    "relations without end": 'UPDATE entries SET relations = \'[["a", "b", 1e999, ""]]\'',
    "unknown fields that are none": "UPDATE entries SET extra = '[1]'",
    "fields that are absent": "UPDATE entries SET text = NULL, tags = NULL",
}


@pytest.mark.parametrize("odd", BOOKKEEPING)
def test_odd_values_end_in_one_message(path, odd):
    tamper(path, BOOKKEEPING[odd])
    for words in (
        ["search", path, "token"],
        ["search", path, "token", "--system", "soleri", "--explain"],
        ["vault", "list", path],
        ["vault", "context", path, "token"],
        ["vault", "get", path, "a"],
        ["search", path, f"team={path}", "token", "--system", "soleri"],
        ["vault", "list", path, "--json"],
    ):
        outcome = steelyard(*words)
        assert outcome.exit_code in (0, 2)
        assert outcome.output.replace("\n", "").isprintable()
