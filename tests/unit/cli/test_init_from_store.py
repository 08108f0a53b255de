"""From somebody's notes to the first sentence."""

import json

import pytest
from click.testing import CliRunner

from steelyard.base.errors import DataError
from steelyard.config.search_config import SearchConfig
from steelyard_eval.choose import leaderboard as costs
from steelyard_eval.cli.init_from_store import find_store
from steelyard_eval.cli.main import main


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with code, hidden folders, and a folder of notes."""
    for name in ("src", ".git", "node_modules/x", "notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Not a memory\n")
    (tmp_path / "node_modules/x/notes.md").write_text("# Not ours\n")
    words = ["river", "stone", "cloud", "paper", "glass", "metal", "wood", "grain", "light", "sound"]
    for at in range(30):
        text = " ".join(words[(at * step + step) % 10] for step in range(1, 9))
        (tmp_path / "notes" / f"n{at}.md").write_text(f"# Note {at}\n\nAbout {text} number{at}.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_only_store_is_found(repository):
    assert find_store(repository).name == "notes"


def test_several_stores_are_named(repository):
    (repository / "diary").mkdir()
    (repository / "diary" / "one.md").write_text("# One\n")

    with pytest.raises(DataError, match=r"2: .*diary, .*notes"):
        find_store(repository)


def test_no_store_says_how_to_name_one(tmp_path):
    with pytest.raises(DataError, match=r"store.*none is found"):
        find_store(tmp_path)


def test_one_command_imports_names_what_ranks_today_and_says_the_sentence(repository):
    found = CliRunner().invoke(main, ["init", "--json"])

    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    assert record["imported"]["counts"]["entries"] == 30
    assert (record["current"], record["why_current"]) == ("bm25", "nothing names it")
    assert "nothing was measured" in record["sentence"]
    assert record["next"] == "steelyard judge mine"
    assert (repository / "mine" / "corpus.jsonl").is_file()


def test_a_store_may_be_named_and_what_ranks_it_too(repository):
    found = CliRunner().invoke(main, ["init", "notes", "--current", "vector"])

    assert found.exit_code == 0, found.output
    assert "vector (as you" in found.stdout
    assert "nothing was measured" in found.stdout
    assert "\nweighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)\n" in found.stdout
    # The files that it names are there, and it names one command to go on with.
    assert "--weights search-weights.try.json" in found.stdout
    assert SearchConfig.load(repository / "search-weights.try.json").provenance["learned_from"]
    assert str(SearchConfig.load(repository / "search-weights.current.json").effective) == "vector"
    assert found.stdout.count("steelyard judge mine") == 1
    assert "write queries and judge 80 pairs, and they count: steelyard judge mine\n" in found.stdout


def test_beside_labels_that_are_there_nothing_is_timed(repository, monkeypatch):
    """It says one sentence, which has no time in it."""
    assert CliRunner().invoke(main, ["init", "notes"]).exit_code == 0
    mine = repository / "mine"
    ids = [json.loads(line)["id"] for line in (mine / "corpus.jsonl").read_text().splitlines()]
    queries = [{"id": f"q{at}", "text": f"number{at}"} for at in range(12)]
    (mine / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (mine / "qrels.txt").write_text("".join(f"q{at} 0 {ids[at]} 1\n" for at in range(12)))
    monkeypatch.setattr(costs, "latencies", None)

    found = CliRunner().invoke(main, ["init", "notes"])
    assert found.exit_code == 0, found.output
    assert "label more" in found.stdout  # by the labels


def test_what_needs_queries_says_who_helps_to_write_them_and_check_needs_none(repository):
    CliRunner().invoke(main, ["init"])
    for words in (["init"], ["compare", "mine"], ["explain", "mine"]):
        found = CliRunner().invoke(main, words)
        assert found.exit_code == 2
        said = "markdown notes has no queries; steelyard judge mine helps to write the first"
        assert said in " ".join(found.output.split())
    found = CliRunner().invoke(main, ["check", "mine"])
    assert found.exit_code == 0, found.output
    assert "no faults" in found.stdout
    assert "steelyard judge mine" in " ".join(found.stdout.split())
    assert CliRunner().invoke(main, ["check", "mine", "--known-items"]).exit_code == 0


def test_what_is_kept_writes_no_weights(repository):
    assert "Keep your bm25" in CliRunner().invoke(main, ["init"]).stdout
    assert not list(repository.glob("search-weights*"))
