"""Commands in this process, and in one apart: what tests of commands share."""

import json
import os
import subprocess
import sys

from click.testing import CliRunner

from steelyard_eval.cli.main import main


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
