"""Commands in this process: what tests of commands share."""

import json

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
