"""What tests share: tables of cases, the checkout, vaults and data sets of a few entries, and commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from steelyard import Vault
from steelyard_eval.cli.main import main
from steelyard_eval.datasets.manifest import starter

ROOT = Path(__file__).parents[2]
"""The checkout."""
STARTER = starter()
"""The starter data set, as the package holds it."""


def beside(test, name=""):
    """What the JSON file beside a test (its `__file__`) holds: that of its own name, or of another."""
    path = Path(test)
    return json.loads((path.with_name(name) if name else path.with_suffix(".json")).read_text("utf-8"))


def tabled(test):
    """A test for each row of the table of its name in the JSON file beside it.

    The first row names the columns; a text in the place of a row says why the row below it is there.
    """
    tables = beside(test.__code__.co_filename)
    names, *rows = (row for row in tables[test.__name__] if isinstance(row, list))
    return pytest.mark.parametrize(names, rows)(test)


def vault_with(*entries, path=":memory:"):
    """A vault of these entries, in memory or made at a path."""
    vault = Vault(path, create=path != ":memory:")
    vault.upsert(entries)
    return vault


def contents(folder):
    """What stands in every file, by its path."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_lines(path, records):
    """The file, whose folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def write_set(folder, corpus, queries=(), qrels="", **about):
    """The folder; of texts the entries are m1, m2 and so on, and the queries q1, q2."""
    for name, rows in (("corpus", corpus), ("queries", queries)):
        named = ({"id": f"{'mq'[name == 'queries']}{at}", "text": row} for at, row in enumerate(rows, 1))
        records = [own if isinstance(row, str) else row for row, own in zip(rows, named, strict=True)]
        write_lines(folder / f"{name}.jsonl", records)
    (folder / "qrels.txt").write_text(qrels)
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", **about}))
    return folder


def told(base, who, content):
    """A line of a session of Claude Code."""
    return {**base, "type": who, "message": {"role": who, "content": content}}


def called(base, key, name, args, answer, *more):
    """The lines of a call of a tool, with what was said beside it, and of its answer."""
    call = {"type": "tool_use", "id": key, "name": name, "input": args}
    result = {"type": "tool_result", "tool_use_id": key, "content": answer}
    return [told(base, "assistant", [call, *more]), told(base, "user", [result])]


# Commands in this process, and in one apart


def run(*words, typed=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=typed, catch_exceptions=False)


def done(*words, code=0):
    """A command that ends with this code."""
    result = run(*words)
    assert result.exit_code == code, result.output
    return result


def document(*words):
    """What a command prints as JSON."""
    return json.loads(done(*words, "--json").stdout)


PROGRAM = """
import contextlib, io, json, os, sys
from unittest.mock import patch
from steelyard_eval.__main__ import main
results = []
for arguments, variables in json.loads(sys.argv[1]):
    out, err, sys.argv = io.StringIO(), io.StringIO(), ["steelyard", *arguments]
    with patch.dict(os.environ, variables), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    results.append([code or 0, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


def run_apart(folder, *commands, **variables):
    """Code and output of each command, given with its variables: one process runs the packages of a folder."""
    environ = {**os.environ, "PYTHONPATH": str(folder), **variables}
    how = {"stdout": subprocess.PIPE, "text": True, "env": environ, "cwd": folder, "check": True}
    return json.loads(subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(commands)], **how).stdout)
