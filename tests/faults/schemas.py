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
import small

from steelyard.systems import SYSTEMS

NAMES = "SELECT CAST(name AS BLOB) FROM sqlite_schema WHERE type = 'table' AND name IS NOT NULL"
"""As bytes, because an earlier statement may have made a name that is no text."""


TABLE = fuzz.DATA["schemas"]
"""Statements, and what stands in their places."""
MOST_STEPS = 10**7
"""A statement of theirs that takes more is broken off, such as one that sets off an endless trigger of theirs."""
MARK = "/* was strict */"


def change(rng, tables, columns, folder):
    table = rng.choice((*tables, *["entries"] * (len(tables) // 3)))
    own = columns.get(table) or ["x"]
    words = {name: rng.choice(every) for name, every in TABLE["words"].items()}
    words["body"] = words["body"].format(folder=folder)
    column = rng.choice((rng.choice(own), "id" if "id" in own else own[0]))  # what is sorted and joined by
    value, name, other = (rng.choice(every) for every in (TABLE["values"], (*tables, *TABLE["names"]), tables))
    kinds = TABLE["values in sound tables"]
    statement = rng.choice(kinds if rng.random() < 0.5 else [*kinds, *TABLE["others"]])
    return statement.format(**words, table=table, column=column, value=value, name=name, other=other)


@contextmanager
def opened(path):
    """What SQLite refuses all the same is left out."""
    with suppress(apsw.Error), small.loosened(path) as db:
        db.set_progress_handler(lambda: True, MOST_STEPS)
        yield db


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
                rows = db.execute(f"SELECT name FROM pragma_table_info('{with_name}')")
                columns[table] = [name for (name,) in rows]
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
    with tempfile.TemporaryDirectory(dir=fuzz.world().folder) as made:
        folder = Path(made)
        path = folder / "memory.vault"
        path.write_bytes(fuzz.world().vault_file)
        done = tampered(path, rng, folder) if data else []
        search = partial(fuzz._search_file, systems=[rng.choice(list(SYSTEMS))])
        try:
            uses = (search, fuzz._search_file, fuzz._read_file, fuzz._list_file, fuzz._change_file)
            outcome = fuzz.tried(uses, str(path))
        except BaseException as error:
            error.add_note(f"after {done}")
            raise
        known = {f"memory.vault{end}" for end in ("", "-wal", "-shm", "-journal")}
        extra = {p.name for p in folder.iterdir()} - known
        assert not extra, f"{extra} was written after {done}"
    return " ".join(outcome)
