"""A data set of two entries, commands in this process, and what attacks are made of."""

import json
from contextlib import contextmanager
from pathlib import Path

import apsw
import sqlite_vec
from click.testing import CliRunner

from steelyard.stores.sqlite.schema import tokenizing
from steelyard_eval.cli.main import main
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.gate.baseline import SEAL

ATTACKS = json.loads(Path(__file__).with_name("attacks.json").read_text("utf-8"))
"""Rows of the tables of several files."""
SET = ATTACKS["a small set"]


def written(folder, **changed):
    folder.mkdir(parents=True)
    for name, text in {**SET, **changed}.items():
        (folder / name).write_text(text)
    return folder


def steelyard(*words, **variables):
    outcome = CliRunner().invoke(main, [str(word) for word in words], env=variables)
    assert "Traceback" not in outcome.output, outcome.output
    assert "bug in steelyard" not in outcome.output, outcome.output
    return outcome


def one_message(outcome, code):
    assert outcome.exit_code == code, outcome.output
    assert outcome.output.replace("\n", "").isprintable()
    return outcome.output


def sealed(record):
    """A baseline as text, sealed again whatever was changed."""
    bare = {name: value for name, value in record.items() if name != SEAL}
    return json.dumps({**bare, SEAL: hashed(bare)})


def whole(piece):
    """A text as it is, or of [before, piece, how often, after]."""
    if isinstance(piece, str):
        return piece
    before, repeated, times, after = piece
    return str(before + repeated * times + after)


def answer(body, status="200 OK"):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status.encode(), len(body)) + body


@contextmanager
def loosened(path):
    """A connection of somebody else, who knows our tokenizer: all that SQLite can be made to allow."""
    db = apsw.Connection(str(path))
    try:
        tokenizing(db)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.create_collation("evil", lambda a, b: (a > b) - (a < b))
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
        yield db
    finally:
        db.close(True)
