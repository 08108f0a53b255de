"""The command line: what it prints, what it writes, and how it fails."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from shared import document, done, run, tabled, write_set

import steelyard
import steelyard_eval as sy
from steelyard.base.arrays import compiled
from steelyard.systems import find_system
from steelyard_eval import precompile
from steelyard_eval.candidates import compiled_loops
from steelyard_eval.cli.main import COMMAND_GROUPS, main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.learn import first_ten
from steelyard_eval.recording.next_steps import shell_command


class TestCommands:
    def test_limit_beats_the_weights_file_and_a_torn_one_is_refused(self, vault, tmp_path):
        record = find_system("echovault").config(10, "lsa").to_json()
        weights = tmp_path / "w.json"
        weights.write_text(json.dumps(record))
        assert len(document("search", vault, "token", "--weights", weights, "--limit", 2)["hits"]) == 2
        weights.write_text(json.dumps(record | {"limit": 3}))
        assert "limit 3 differs from" in done("search", vault, "token", "--weights", weights, code=2).stderr
        record["retrievers"]["fts"]["field_weights"]["titel"] = 2
        weights.write_text(json.dumps(record))
        assert "did you mean 'title'" in done("search", vault, "token", "--weights", weights, code=2).stderr

    def test_context_without_a_query_lists_the_newest_in_scope(self, vault):
        entries = document("vault", "context", vault, "--filter", "project=infra", "--limit", 4)["entries"]
        dates = [entry["created_at"] for entry in entries]
        assert dates == sorted(dates, reverse=True)
        assert {(entry["project"], entry["score"]) for entry in entries} == {("infra", None)}

    def test_demo_writes_everything_and_names_commands_that_there_are(self, tmp_path, monkeypatch):
        """Both commands run in docs/feedback.md and in tests/unit/choose/test_decisions.py."""
        # it is larger, and `make demo` runs it
        monkeypatch.setattr("steelyard_eval.datasets.manifest.workshop", starter)
        told = done("demo", "--out", tmp_path / "a").stdout
        shown = json.loads((tmp_path / "a" / "report.json").read_text())
        labels = {row["label"] for row in shown["rows"]}
        assert labels >= {"fts", "bm25", "vector", "soleri, tuned", "weighted sum, tuned", "layered, tuned"}
        assert shown["provenance"]["baseline"] == "echovault"
        vault, searching = (step["command"] for step in shown["answer"]["steps"][-2:])  # both can be pasted
        assert (vault[1], Path(vault[2]).resolve()) == ("index", starter())
        assert (searching[2], searching[-1]) == (vault[3], str(tmp_path / "a" / "search-weights.json"))
        for line in told.rstrip().splitlines()[-2:]:  # to learn from its log, and to export
            _, name, *words = shlex.split(line[line.index("steelyard ") :])
            main.commands[name].make_context(name, words)  # raises for an option that there is not

    @tabled
    def test_what_is_mistyped_is_refused_and_named(self, vault, words, told):
        found = run(*(vault if word == "{vault}" else word for word in words))
        assert (found.exit_code, found.stdout) == (2, "")
        assert told in found.stderr
        assert "Traceback" not in found.stderr

    def test_a_folder_that_cannot_be_written_is_the_environments_fault(self, tmp_path):
        (tmp_path / "file").write_text("a file where a folder is needed")  # root may write everywhere else
        below = tmp_path / "file" / "new"
        for words in (("tune", starter(), "rrf(fts, vector)", "--out", below), ("index", starter(), below)):
            found = done(*words, code=4)
            assert found.stdout == ""
            assert "cannot " in found.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


# A full disk, a reader that leaves, options without a space


class TestOddities:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EPIPE])
    def test_an_error_of_the_system_is_one_message_and_code_4_unless_the_reader_left(self, number, monkeypatch):
        @click.command("broken")
        def broken():
            raise OSError(number, "reason", "place.json")

        monkeypatch.setitem(main.commands, "broken", broken)
        found = run("broken")
        told = number != errno.EPIPE
        assert (found.exit_code == 4, "place.json: reason; free" in found.stderr) == (told, told)
        assert found.stdout == ""

    @pytest.mark.parametrize("text", ["-incident", "-5", "-q5", "-kx", "-hot", "--why this", "why", "-"])
    def test_what_begins_like_an_option_and_is_none_is_a_text(self, vault, text):
        assert "hits" in document("search", vault, text, "--system", "bm25")

    def test_a_dash_is_an_exclusion_where_the_system_has_them_and_may_begin_a_value(self, vault):
        found = {hit["id"] for hit in document("search", vault, "-incident", "--system", "moltnet")["hits"]}
        assert found
        assert "team-incident-review" not in found
        assert done("search", vault, "keys", "--set", "domain=-x", "-h").stdout.startswith("Usage: ")

    def test_options_of_every_command_stand_anywhere(self, vault):
        at_the_end = run("search", vault, "session tokens", "--system", "bm25", "--json", "-q")
        first = run("--json", "search", "--quiet", vault, "session tokens", "--system", "bm25")
        assert first.stdout == at_the_end.stdout
        assert "embedded" not in json.loads(at_the_end.stdout)  # what nothing rewrote is embedded as it was asked


# The choice of an embedder stands in dataset.json: later commands need no option, and printed ones repeat it

WORDS = ["rotate", "keys", "cache", "retry", "jitter", "token", "vault", "export", "index", "merge"]


@pytest.fixture
def folder(tmp_path):
    """Ten entries, four queries and labels."""
    texts = [f"{word} {WORDS[i - 1]} note" for i, word in enumerate(WORDS)]
    qrels = "".join(f"q{i} 0 m{i} 1\n" for i in range(1, 5))
    asked = [f"{word} note" for word in WORDS[:4]]
    return write_set(tmp_path / "mine", texts, asked, qrels, as_of="2026-11-01")


def about(folder):
    return json.loads((folder / "dataset.json").read_text())


class TestEmbedder:
    def test_a_choice_stands_for_all_later_commands_until_it_is_taken_out(self, folder):
        done("compare", folder, "bm25, fts", "--embedder", "none")
        assert about(folder)["embedder"] == "none"
        assert "model" not in document("recommend", folder)["provenance"]
        done("recommend", folder, "--embedder", "lsa")
        assert about(folder)["embedder"] == "lsa"
        done("compare", folder, "bm25", "--embedder", "auto")
        assert "embedder" not in about(folder)

    @pytest.mark.parametrize("place", [None, pytest.param(starter(), marks=pytest.mark.nightly)])
    def test_a_recommendation_has_the_same_bytes_twice(self, folder, place, tmp_path, monkeypatch):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
        made = []
        for _ in range(2):
            done("recommend", place or folder, "--out", tmp_path / "w.json", "--report", tmp_path / "report")
            files = [*tmp_path.glob("w*.json"), tmp_path / "report" / "report.json"]
            made.append({path.name: path.read_bytes() for path in files})
        assert made[0] == made[1]
        assert len(made[0]) > 1

    def test_a_printed_command_names_what_dataset_json_does_not(self, folder):
        def named(command, embedder):
            return shlex.split(shell_command(command, load(folder).embedded_by(embedder), options={}))[-2:]

        assert named("judge", "none") == ["--embedder", "none"]
        done("compare", folder, "bm25", "--embedder", "none")
        assert "--embedder" not in named("judge", "none") + named("runs", "lsa")
        assert named("judge", "lsa") == ["--embedder", "lsa"]
        steps = sy.load(folder, embedder="lsa").recommend().result.answer.steps
        commands = [step.command for step in steps if step.command[:2] == ["steelyard", "judge"]]
        assert commands
        assert all(command[-2:] == ["--embedder", "lsa"] for command in commands)

    @tabled
    def test_what_only_shows_or_fails_chooses_nothing(self, folder, words):
        before = (folder / "dataset.json").read_bytes()
        job, *rest = words.split()
        run(job, folder, *rest, "--embedder", "none")
        assert (folder / "dataset.json").read_bytes() == before

    def test_a_set_that_comes_with_the_package_is_never_written(self):
        before = (starter() / "dataset.json").read_bytes()
        done("compare", starter(), "bm25", "--embedder", "none")
        assert (starter() / "dataset.json").read_bytes() == before

    @pytest.mark.parametrize("name", ["api", "gpt", "lsa:x", "", 3, ["lsa"]])
    def test_no_file_names_an_embedder_that_asks_anybody_or_is_none(self, folder, name):
        (folder / "dataset.json").write_text(json.dumps({"name": "mine", "embedder": name}))
        with pytest.raises(sy.DataError, match="embedder"):
            load(folder)


# What commands have in common: spellings, --quiet, examples, completion, output that fits the terminal


def walk(group=main, before=()):
    """Every command, of groups too, with its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from walk(command, (*before, name))
        else:
            yield (*before, name), command


ALL = dict(walk())  # words -> command


def test_there_are_twenty_commands_in_groups_and_few_options():
    grouped = [one.name for commands in COMMAND_GROUPS.values() for one in commands]
    assert sorted(grouped) == sorted(main.commands)
    assert len(grouped) == 20
    options = [one for command in (*ALL.values(), main) for one in command.params if isinstance(one, click.Option)]
    assert len(options) <= 180


GONE = ["act", "context", "get", "list", "loop", "feedback", "floor", "refresh", "reindex"]


class TestHelp:
    @pytest.mark.parametrize("name", GONE)
    def test_a_command_that_is_gone_says_what_took_its_place(self, name):
        found = run(name, "x")
        assert found.exit_code == 2
        (place,) = re.findall("did you mean '(.*)'", found.stderr)
        assert all(step.split()[0] in main.commands for step in place.split("; "))

    @pytest.mark.parametrize("words", sorted(ALL), ids=" ".join)
    def test_every_help_ends_with_examples_that_parse(self, words):
        help_text = run(*words, "--help").stdout
        lines = [line.strip() for line in help_text.partition("Examples:")[2].splitlines() if line.strip()]
        assert lines
        for line in lines:
            typed = shlex.split(line)[1:]
            assert tuple(typed[: len(words)]) == words
            ALL[words].make_context(words[-1], typed[len(words) :])  # raises for an option that there is not

    def test_quiet_is_silent_but_for_errors(self):
        words = ("compare", starter(), "bm25,echovault")
        assert "note: all use" in run(*words).stderr
        assert run(*words, "-q").stderr == ""
        assert run("-q", *words).stderr == ""
        assert "note:" in run(*words).stderr  # it lasts for one command
        assert run("compare", "nowhere", "-q").stderr.startswith("error: nowhere: 1 fault")

    def test_a_vault_where_a_data_set_belongs_and_a_folder_where_weights_belong(self, vault, tmp_path):
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
    assert not loaded("compare", starter(), "bm25,fts", heavy={"sklearn"})


THREADS = """
import sys
from importlib import import_module
from threadpoolctl import threadpool_info
sys.argv = ["steelyard", "search", "nowhere", "x", "--system", "fts"]
try:
    import_module("steelyard_eval.__main__").main()
finally:
    import numpy
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
