"""What commands have in common: spellings, --quiet, examples, completion, output that fits the terminal."""

import os
import re
import shlex
import subprocess
import sys

import click
import pytest
from command_line import done, run

import steelyard
from steelyard.base.arrays import compiled
from steelyard_eval import precompile
from steelyard_eval.candidates import compiled_loops
from steelyard_eval.cli.main import GROUPS, main
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.learn import first_ten


def walk(group=main, before=()):
    """Every command, of groups too, with its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from walk(command, (*before, name))
        else:
            yield (*before, name), command


ALL = dict(walk())
"""Words -> command."""


def test_there_are_twenty_commands_in_groups_and_few_options():
    grouped = [one.name for commands in GROUPS.values() for one in commands]
    assert sorted(grouped) == sorted(main.commands)
    assert len(grouped) == 20
    options = [one for command in (*ALL.values(), main) for one in command.params if isinstance(one, click.Option)]
    assert len(options) <= 180


GONE = ["act", "context", "get", "list", "loop", "feedback", "floor", "refresh", "reindex"]


@pytest.mark.parametrize("name", GONE)
def test_a_command_that_is_gone_says_what_took_its_place(name):
    found = run(name, "x")
    assert found.exit_code == 2
    (place,) = re.findall("did you mean '(.*)'", found.stderr)
    assert all(step.split()[0] in main.commands for step in place.split("; "))


@pytest.mark.parametrize("words", sorted(ALL), ids=" ".join)
def test_every_help_ends_with_examples_that_parse(words):
    help_text = run(*words, "--help").stdout
    lines = [line.strip() for line in help_text.partition("Examples:")[2].splitlines() if line.strip()]
    assert lines
    for line in lines:
        typed = shlex.split(line)[1:]
        assert tuple(typed[: len(words)]) == words
        ALL[words].make_context(words[-1], typed[len(words) :])  # raises for an option that there is not


def test_quiet_is_silent_but_for_errors():
    words = ("compare", starter(), "bm25,echovault")
    assert "note: all share" in run(*words).stderr
    assert run(*words, "-q").stderr == ""
    assert run("-q", *words).stderr == ""
    assert "note:" in run(*words).stderr  # it lasts for one command
    assert run("compare", "nowhere", "-q").stderr.startswith("error: nowhere: 1 fault")


def test_a_vault_where_a_data_set_belongs_and_a_folder_where_weights_belong(vault, tmp_path):
    assert "is not a folder" in done("explain", vault, "q1", code=2).stderr
    for remedy in ("`steelyard recommend` writes one", "name the search-weights.json in it"):
        told = done("export", tmp_path, "--to", "vespa", code=2).stderr
        assert f"Is a directory; {remedy}" in told
        assert "Errno" not in told
        (tmp_path / "search-weights.json").touch()


# What a command loads: importing takes most of the time of a short one

HEAVY = {"apsw", "matplotlib", "numba", "numpy", "pandas", "rapidfuzz", "scipy", "sklearn", "sqlite_vec"}
LOADED = """
import sys
from steelyard_eval.cli.main import main
main(sys.argv[1:], standalone_mode=False)
sys.stderr.write("loaded: " + " ".join(sys.modules))
"""


def loaded(*words, heavy=HEAVY):
    command = [sys.executable, "-c", LOADED, *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return heavy & {name.partition(".")[0] for name in ended.stderr.partition("loaded: ")[2].split()}


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_what_searches_nothing_loads_nothing(word):
    assert loaded(word, heavy=HEAVY | {"msgspec"}) == set()


def test_a_search_loads_what_it_searches_with(tmp_path):
    done("index", starter(), tmp_path / "memory.db", "--embedder", "none")
    found = loaded("search", tmp_path / "memory.db", "rotate the token", "--system", "fts")
    assert found == {"apsw", "numpy", "sqlite_vec"}


THREADS = """
import sys
from importlib import import_module
from threadpoolctl import threadpool_info
sys.argv = ["steelyard", "doctor", "--json"]
try:
    import_module("steelyard_eval.__main__").main()
finally:
    found = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    sys.stderr.write(f"threads: {found[0]}")
"""


@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_products_of_a_command_have_one_thread_unless_somebody_says_otherwise(given, expected):
    """As OpenBLAS itself says (threadpoolctl asks the library)."""
    names = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
    environ = {name: value for name, value in os.environ.items() if name not in names} | given
    command = [sys.executable, "-c", THREADS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert ended.stderr.rpartition("threads: ")[2] == expected


def test_precompiling_runs_the_loops_of_every_search_for_weights():
    precompile.main()
    before = compiled.cache_info().misses
    compiled_loops.compiled()
    first_ten.loop()
    assert compiled.cache_info().misses == before  # it was compiled then


def test_every_name_of_the_engine_can_be_asked_for():
    for name in steelyard._MODULES:
        assert getattr(steelyard, name) is not None
        assert name in dir(steelyard)
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        steelyard.Absent  # noqa: B018 -- asking is the test
