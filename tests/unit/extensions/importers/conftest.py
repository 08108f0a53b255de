"""What imports remember of their sources is of each test alone; stores that tests change."""

import contextlib
import sqlite3

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def change():
    """Runs statements on a database, without its triggers."""

    def run(path, *statements):
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                db.execute(f'DROP TRIGGER "{name}"')
            for statement in statements:
                db.execute(statement)

    return run
