"""What commands have in common: spellings, --quiet, examples, completion, output that fits the terminal."""

import json
import pkgutil
import re
import shlex
import shutil
import sqlite3
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from steelyard_eval.cli import commands
from steelyard_eval.cli.commands import COMMANDS, load_command, shared_options
from steelyard_eval.cli.main import main
from steelyard_eval.datasets.starter import starter

COMPARE = ("compare", starter(), "--systems", "bm25")


def run(*words: object) -> object:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_help_ends_with_examples_that_parse(name: str) -> None:
    help_text = run(name, "--help").stdout
    assert "Examples:" in help_text
    for line in shared_options.EXAMPLES[name]:
        assert line in help_text
        words = shlex.split(line)
        assert words[:2] == ["steelyard", name]
        load_command(name).make_context(name, words[2:])  # raises for an option that there is not


@pytest.mark.parametrize("name", sorted(main.commands))
def test_short_and_other_names_of_options(name: str) -> None:
    options = {opt for param in load_command(name).params for opt in param.opts}
    for spellings in shared_options.SPELLINGS:
        assert not options & set(spellings) or set(spellings) <= options
    assert {"-q", "--quiet"} <= options


@pytest.mark.parametrize("name", sorted(main.commands))
def test_help_tells_the_default_of_every_option_that_has_one(name: str) -> None:
    help_text = " ".join(run(name, "--help").stdout.split()).replace("- ", "-")  # lines break after hyphens, too
    for param in load_command(name).params:
        if isinstance(param.default, str | int | float) and param.default and not getattr(param, "is_flag", True):
            told = param.show_default if isinstance(param.show_default, str) else param.default
            assert f"[default: {told}" in help_text, param.opts


def test_both_spellings_mean_the_same(tmp_path: Path) -> None:
    words = ("compare", starter(), "--system", "bm25", "--strategy", "fts", "--metric", "P@5", "-k", 5)
    found = run(*words, "-o", tmp_path / "r.json", "--json")
    document = json.loads(found.stdout)
    assert [row["label"] for row in document["rows"]] == ["bm25", "fts"]
    assert (document["provenance"]["limit"], document["provenance"]["metrics"][0]) == (5, "P@5")
    assert (tmp_path / "r.json").is_file()


def test_every_metric_that_is_asked_for_is_shown_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = run(*COMPARE, "--metrics", "MAP@10,P@5,Success@5,MRR,ndcg@10").stdout.splitlines()
    head = next(line for line in lines if line.startswith(" "))
    assert head.split()[:7] == ["AP@10", "[95%]", "P@5", "Success@5", "RR", "nDCG@10", "Judged@10"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_of_a_comparison_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    long = "weighted_sum(0.25*bm25, 0.35*vector, 0.2*fts, 0.2*recency(half_life=90d), normalize=minmax)"
    text = run(*COMPARE, "--strategies", long).stdout
    assert max(len(line) for line in text.splitlines() if "steelyard" not in line) <= columns


def test_quiet_is_silent_but_for_errors() -> None:
    words = ("compare", starter(), "--systems", "bm25,echovault")
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
    assert "is a vault" in found.stderr
    assert "steelyard search" in found.stderr
    for remedy in ("`steelyard recommend` writes one", "name the search-weights.json in it"):
        found = run("export", tmp_path, "--to", "vespa")
        assert found.exit_code == 2
        assert f"Is a directory; {remedy}" in found.stderr
        assert "Errno" not in found.stderr
        (tmp_path / "search-weights.json").touch()


def test_a_tuning_is_reported(tmp_path: Path) -> None:
    words = ("tune", starter(), "rrf(fts, vector)", "-o", tmp_path / "w.json", "--json")
    (tmp_path / "t.json").write_text(run(*words).stdout)
    assert run("report", tmp_path / "t.json", "-o", tmp_path / "r").exit_code == 0
    assert "rrf(fts, vector, k=60)" in (tmp_path / "r" / "report.md").read_text()


# Completion


@pytest.mark.parametrize(
    ("words", "typed", "found"),
    [
        (["compare", "x", "--systems"], "bm25,ec", {"bm25,echovault", "bm25,echovault:shipped"}),
        (["tune", "x"], "rrf(bm25, 2*ve", {"rrf(bm25, 2*vector"}),
        (["tune", "x"], "weigh", {"weighted_sum("}),
        (["compare", "x", "--metrics"], "nDCG@10,ju", {"nDCG@10,Judged@10"}),
        (["export", "w.json", "--to"], "el", {"elasticsearch"}),
        (["explain", "x", "q", "--against"], "sol", {"soleri", "soleri:shipped"}),
        ([], "rep", {"report"}),
    ],
)
def test_the_shell_completes_names(words: list[str], typed: str, found: set[str]) -> None:
    completer = BashComplete(main, {}, "steelyard", "_STEELYARD_COMPLETE")
    assert {item.value for item in completer.get_completions(words, typed)} == found


def test_every_metric_that_is_completed_is_one() -> None:
    from steelyard_eval.cli.commands.completion import metric_names
    from steelyard_eval.measures.metrics import parse_measures

    assert [str(measure) for measure in parse_measures(metric_names())] == metric_names()


def test_every_command_is_listed_with_a_line_that_fits() -> None:
    listed = run("--help").stdout.partition("Commands:")[2]
    for name, line in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", listed, re.MULTILINE)
        assert load_command(name).name == name


def test_no_command_is_left_out() -> None:
    modules = [f"{commands.__name__}.{found.name}" for found in pkgutil.iter_modules(commands.__path__)]
    written = {
        one.name
        for name in modules
        for one in vars(import_module(name)).values()
        if isinstance(one, click.Command)
    }
    assert written == COMMANDS.keys()


def test_index_says_what_it_made_more_of_than_there_are_entries(tmp_path):
    """By hand: each of the 131 entries of the data set has a vector of its text at least."""
    said = run("index", starter(), tmp_path / "v.db").stdout
    made = re.search(r"131 entries, 131 changed, (\d+) vectors made of texts and their layers", said)
    assert made and int(made[1]) >= 131
