"""What happens beside the usual: a full disk, a reader that leaves, options without a space."""

import errno
import json

import click
import pytest
from click.testing import CliRunner

from steelyard_eval.cli.commands import typed_query as query
from steelyard_eval.cli.main import main
from steelyard_eval.datasets.starter import starter


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


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


@pytest.mark.parametrize("option", ["-k5", "-k12"])
def test_a_number_may_stand_right_behind_its_letter(tmp_path, option):
    vault = tmp_path / "v.db"
    assert run("index", starter(), vault).exit_code == 0
    found = json.loads(run("search", vault, "session tokens", option, "--system", "bm25", "--json").stdout)
    assert len(found["hits"]) == int(option[2:])
    assert "embedded" not in found  # a query that nothing rewrote is embedded as it was asked


def test_what_begins_like_an_option_and_is_none_is_a_text():
    options = {"-k": True, "--json": False, "-q": False}
    told = ["-k", "--json", "-k5", "-5", "-q5", "-kx", "--why this", "why", "--unknown=a b"]
    assert [query._is_text(text, options) for text in told] == [
        False,
        False,
        False,
        True,
        True,
        True,
        True,
        False,
        False,
    ]
