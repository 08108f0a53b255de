"""Valid SQLite files with the schema of somebody else, a target of fuzz.py: nothing of theirs runs.

A vault is changed by one to four statements (other columns, types, views, triggers, generated columns, virtual
tables, collations, odd values in every table, those of FTS5 and sqlite-vec included), and is then searched, read,
listed, changed and indexed anew.
"""

import random
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import apsw
import fuzz
import sqlite_vec

from steelyard.base.errors import SteelyardError
from steelyard.systems import SYSTEMS

NAMES = "SELECT CAST(name AS BLOB) FROM sqlite_schema WHERE type = 'table' AND name IS NOT NULL"
"""As bytes, because an earlier statement may have made a name that is no text."""


VALUES = (
    *("NULL", "''", "'x'", "0", "-1", "1", "2", "9223372036854775807", "-9223372036854775808", "9e999", "-9e999"),
    *("1.5", "x''", "x'00'", "x'ffffffff'", "zeroblob(8)", "zeroblob(100000)", "randomblob(128)"),
    *("'[]'", "'{}'", "'[[1]]'", "'{\"a\":1}'", "char(0)", "char(27) || '[31m'", "char(31)", "'\u202e'", "'%'"),
    *("randomblob(8192)", "hex(zeroblob(50000))", "replace(hex(zeroblob(2000)), '00', '[')"),
    *("'1; DROP TABLE entries'", "CAST(x'ff' AS TEXT)"),
)
MOST_STEPS = 10**7
"""A statement of theirs that takes more is broken off, such as one that sets off an endless trigger of theirs."""
MARK = "/* was strict */"
TYPES = ("INTEGER", "TEXT", "REAL", "BLOB", "ANY", "", "NUMERIC", "EVIL(1)")
EXPRESSIONS = ("hex(zeroblob(99999999))", "load_extension('x')", "randomblob(9)", "abs(-9223372036854775808)", "1")


def bodies(folder):
    """What a statement of theirs would do; the files it would touch are looked at afterwards."""
    return (
        "DELETE FROM entries",
        "UPDATE meta SET value = 'owned'",
        "INSERT INTO meta VALUES('owned', '1')",
        "SELECT load_extension('evil')",
        "SELECT writefile('" + str(folder / "written") + "', 'x')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    )


def change(rng, tables, columns, folder):
    table = rng.choice((*tables, *["entries"] * (len(tables) // 3)))
    own = columns.get(table) or ["x"]
    column = rng.choice((rng.choice(own), "id" if "id" in own else own[0]))  # what is sorted and joined by
    body, end = rng.choice(bodies(folder)), rng.choice(("min", "max"))
    when, event = rng.choice(("BEFORE", "AFTER")), rng.choice(("INSERT", "UPDATE", "DELETE"))
    name = rng.choice((*tables, "evil", "vec_1", "vec_99", "fts_evil", "sqlite_stat1", "fts_content_data"))
    module = rng.choice(
        ("fts4(x)", "fts5(x)", "fts5(x, content=entries)", "rtree(a, b, c)", "dbstat", "vec0(embedding float[3])")
    )
    value, kind, expression = rng.choice(VALUES), rng.choice(TYPES), rng.choice(EXPRESSIONS)
    was, now = (
        rng.choice(("TEXT", "STRICT", "fts5", "entries", "float")),
        rng.choice(("BLOB", "", "rtree", "meta")),
    )
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n"
    kinds = (
        f'UPDATE "{table}" SET "{column}" = {value}',
        f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid = (SELECT {end}(rowid) FROM "{table}")',
        f'INSERT INTO "{table}"("{column}") VALUES({value})',
        f'DELETE FROM "{table}" WHERE rowid % 2 = {rng.randrange(2)}',
        f'ALTER TABLE "{table}" ADD COLUMN evil {kind}',
        f'ALTER TABLE "{table}" ADD COLUMN evil {kind} AS ({expression})',
        f'ALTER TABLE "{table}" ADD COLUMN evil TEXT COLLATE evil',
        f'ALTER TABLE "{table}" RENAME TO "{rng.choice(("evil", "kept", "vec_7"))}"',
        f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO evil',
        f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
        f'DROP TABLE "{table}"',
        f'CREATE TABLE "{name}"({column} {kind})',
        f'CREATE VIEW "{name}" AS SELECT * FROM "{table}"',
        f'CREATE VIEW "{name}" AS {endless}',
        f'CREATE TRIGGER "evil{rng.randrange(9)}" {when} {event} ON "{table}" BEGIN {body}; END',
        f'CREATE INDEX "evil{rng.randrange(9)}" ON "{table}"({expression})',
        f'CREATE INDEX "evil{rng.randrange(9)}" ON "{table}"("{column}" COLLATE evil)',
        f'CREATE VIRTUAL TABLE "{name}" USING {module}',
        f"UPDATE sqlite_schema SET sql = replace(sql, '{was}', '{now}') WHERE name = '{table}'",
        f"UPDATE sqlite_schema SET {rng.choice(('name', 'tbl_name', 'type', 'sql', 'rootpage'))} = {value} "
        f"WHERE name = '{table}'",
        "UPDATE sqlite_schema SET rootpage = "
        f"(SELECT rootpage FROM sqlite_schema WHERE name = '{rng.choice(tables)}') WHERE name = '{table}'",
        f"PRAGMA user_version = {rng.choice((-5, 0, 1, 2, 2147483647))}",
        f"PRAGMA application_id = {rng.choice((0, 1, 0x53544C59))}",
        f"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = '{table}'",
        "PRAGMA journal_mode = delete",
    )
    # Values in tables that are sound otherwise get furthest, so they are tried more often.
    return rng.choice(kinds[:3] if rng.random() < 0.5 else kinds)


@contextmanager
def opened(path):
    """The file, with all that SQLite can be made to allow; what it refuses all the same is left out."""
    db = apsw.Connection(str(path))
    try:
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.create_collation("evil", lambda a, b: (a > b) - (a < b))
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
        db.set_progress_handler(lambda: True, MOST_STEPS)
        with suppress(apsw.Error):
            yield db
    finally:
        db.close(True)


def tampered(path, rng, folder):
    """Change the vault, now and then while its strict tables take any value; what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        loosely = rng.random() < 0.3
        if loosely:
            with opened(path) as db:
                db.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ') {MARK}')")
        with opened(path) as db:
            tables = [name.decode("utf-8", "replace") for (name,) in db.execute(NAMES)]
            columns = {}
            for table in tables:
                with_name = table.replace("'", "''")
                columns[table] = [
                    name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{with_name}')")
                ]
            sql = change(rng, [t for t in tables if t] or ["entries"], columns, folder)
            db.execute(sql).fetchall()
            done.append(("loosely " if loosely else "") + sql)
        if loosely:
            with opened(path) as db:
                db.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ') {MARK}', ') STRICT')")
    return done


def schema(data):
    """A vault that was changed as these bytes say is refused, or answers what it can; none leaves a sound one."""
    rng = random.Random(data)  # noqa: S311 -- reproducible, not secret
    outcome = []
    with tempfile.TemporaryDirectory(dir=fuzz.world().folder) as made:
        folder = Path(made)
        path = folder / "memory.vault"
        path.write_bytes(fuzz.world().vault_file)
        done = tampered(path, rng, folder) if data else []
        search = partial(fuzz._search_file, systems=[rng.choice(list(SYSTEMS))])
        for use in (search, fuzz._search_file, fuzz._read_file, fuzz._list_file, fuzz._change_file):
            try:
                outcome.append(use(str(path)))
            except SteelyardError as error:
                outcome.append(fuzz.refusal(error)[:12])
            except BaseException as error:
                error.add_note(f"after {done}")
                raise
        extra = {p.name for p in folder.iterdir()} - {
            f"memory.vault{end}" for end in ("", "-wal", "-shm", "-journal")
        }
        assert not extra, f"{extra} was written after {done}"
    return " ".join(outcome)
