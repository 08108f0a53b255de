"""What happens beside the usual: a full disk, a reader that leaves, options without a space."""

import errno
import json

import click
import pytest
from command_line import run

from steelyard_eval.cli.main import main


@pytest.fixture
def failing(monkeypatch):
    """A command that ends with an error of the system."""

    def command(number):
        @click.command("broken")
        def broken():
            raise OSError(number, "reason", "place.json")

        monkeypatch.setitem(main.commands, "broken", broken)
        return run("broken")

    return command


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_an_error_of_the_system_is_one_message_and_code_4(failing, number):
    found = failing(number)
    assert (found.exit_code, found.stdout) == (4, "")
    assert "place.json: reason; free" in found.stderr


def test_a_reader_that_has_enough_is_no_error_to_tell(failing):
    found = failing(errno.EPIPE)
    assert found.exit_code != 4
    assert "reason" not in found.output


@pytest.mark.parametrize("text", ["-incident", "-5", "-q5", "-kx", "-hot", "--why this", "why", "-"])
def test_what_begins_like_an_option_and_is_none_is_a_text(vault, text):
    found = run("search", vault, text, "--json", "--system", "bm25")
    assert "hits" in json.loads(found.stdout)


@pytest.mark.parametrize("option", ["--limt", "--limt=5", "--unknown=a b"])
def test_a_misspelt_option_is_refused(vault, option):
    found = run("search", vault, "token", option)
    assert (found.exit_code, found.stdout) == (2, "")
    assert option.partition("=")[0] in found.stderr


def test_options_of_every_command_stand_anywhere(vault):
    at_the_end = run("search", vault, "session tokens", "--system", "bm25", "--json", "-q")
    assert (
        run("--json", "search", "--quiet", vault, "session tokens", "--system", "bm25").stdout == at_the_end.stdout
    )
    assert "embedded" not in json.loads(
        at_the_end.stdout
    )  # a query that nothing rewrote is embedded as it was asked
    assert run("search", vault, "x", "--memory", "tiny").exit_code == 2
