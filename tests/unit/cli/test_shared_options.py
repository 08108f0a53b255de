"""What commands have in common: spellings, --quiet, examples, completion, output that fits the terminal."""

import re
import shlex
import shutil
import sqlite3
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from steelyard_eval.cli.main import GROUPS, main
from steelyard_eval.datasets.manifest import starter

COMPARE = ("compare", starter(), "bm25")


def run(*words: object) -> object:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def walk(group=main, before=()):
    """Every command, of groups too, with its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from walk(command, (*before, name))
        else:
            yield (*before, name), command


def options(command):
    return [param for param in command.params if isinstance(param, click.Option)]


ALL = dict(walk())
"""Words -> command."""


def test_there_are_twenty_commands_in_groups_and_few_options():
    grouped = [one.name for commands in GROUPS.values() for one in commands]
    assert sorted(grouped) == sorted(main.commands)
    assert len(grouped) == 20
    assert sum(map(len, map(options, ALL.values()))) + len(options(main)) <= 180


def test_an_option_has_one_name_and_one_meaning():
    short = {"-q", "-v"}  # beside --quiet and --verbose
    for command in (main, *ALL.values()):
        for option in options(command):
            assert len(set(option.opts) - short) == 1
    for words, command in ALL.items():
        for option in options(command):
            assert option.help, (words, option.opts)


@pytest.mark.parametrize(
    "name", ["act", "context", "get", "list", "loop", "feedback", "floor", "refresh", "reindex"]
)
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


@pytest.mark.parametrize("words", sorted(ALL), ids=" ".join)
def test_help_tells_the_default_of_every_option_that_has_one(words):
    help_text = " ".join(run(*words, "--help").stdout.split()).replace("- ", "-")  # lines break after hyphens, too
    for param in options(ALL[words]):
        if isinstance(param.default, str | int | float) and param.default and not param.is_flag:
            assert f"[default: {param.default}" in help_text, param.opts


def test_every_metric_that_is_asked_for_is_shown_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = run(*COMPARE, "--metrics", "MAP@10,P@5,Success@5,MRR,ndcg@10").stdout.splitlines()
    head = next(line for line in lines if line.startswith(" "))
    assert head.split()[:7] == ["AP@10", "[95%]", "P@5", "Success@5", "RR", "nDCG@10", "Judged@10"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_of_a_comparison_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    long = "weighted_sum(0.25*bm25, 0.35*vector, 0.2*fts, 0.2*recency(half_life=90d), normalize=minmax)"
    text = run(*COMPARE, long).stdout
    assert max(len(line) for line in text.splitlines() if "steelyard" not in line) <= columns


def test_quiet_is_silent_but_for_errors() -> None:
    words = ("compare", starter(), "bm25,echovault")
    assert "note: all share" in run(*words).stderr
    assert run(*words, "-q").stderr == ""
    assert run("-q", *words).stderr == ""
    assert "note:" in run(*words).stderr  # it lasts for one command
    assert run("compare", "nowhere", "-q").stderr.startswith("error: nowhere: 1 fault")


def test_one_fault_is_singular_and_a_flood_is_counted(tmp_path: Path) -> None:
    assert run("check", tmp_path / "gone").stdout.splitlines()[-1] == "1 fault"
    shutil.copytree(starter(), tmp_path / "set")
    lines = (tmp_path / "set" / "corpus.jsonl").read_text().replace('"id":', '"zz":', 10_000).splitlines()
    (tmp_path / "set" / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "set" / "dataset.json").write_text('{"name": "x"}')
    found = run("check", tmp_path / "set")
    assert found.exit_code == 2
    shown = [line for line in found.stdout.splitlines() if not line.startswith("note:")]
    assert len(shown) == 5  # three, the count of the others, the count of all
    assert shown[0] == 'corpus.jsonl:1: id: is missing. Add "id"'
    assert shown[3] == f"... and {len(lines) - 3} more like these in corpus.jsonl, the last in line {len(lines)}"
    assert shown[4].startswith(f"{len(lines)} faults")


def test_a_vault_where_a_data_set_belongs_and_a_folder_where_weights_belong(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as db:
        db.execute("CREATE TABLE t (x)")
    found = run("explain", tmp_path / "memory.db", "q1")
    assert "is not a folder" in found.stderr
    for remedy in ("`steelyard recommend` writes one", "name the search-weights.json in it"):
        found = run("export", tmp_path, "--to", "vespa")
        assert found.exit_code == 2
        assert f"Is a directory; {remedy}" in found.stderr
        assert "Errno" not in found.stderr
        (tmp_path / "search-weights.json").touch()


def test_a_tuning_is_reported(tmp_path: Path) -> None:
    words = ("tune", starter(), "rrf(fts, vector)", "--out", tmp_path / "w.json", "--json")
    (tmp_path / "t.json").write_text(run(*words).stdout)
    assert run("report", tmp_path / "t.json", "--out", tmp_path / "r").exit_code == 0
    assert "rrf(fts, vector, k=60)" in (tmp_path / "r" / "report.md").read_text()


def test_the_shell_completes_commands() -> None:
    completer = BashComplete(main, {}, "steelyard", "_STEELYARD_COMPLETE")
    assert [item.value for item in completer.get_completions([], "rep")] == ["report"]


def test_index_says_what_it_made_more_of_than_there_are_entries(tmp_path):
    """By hand: each of the 131 entries of the data set has a vector of its text at least."""
    said = run("index", starter(), tmp_path / "v.db").stdout
    made = re.search(r"131 entries, 131 changed, (\d+) vectors made of texts and their layers", said)
    assert made and int(made[1]) >= 131
