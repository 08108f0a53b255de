"""The choice of an embedder stands in dataset.json: later commands need no option, and printed ones repeat it."""

import json
import shlex

import pytest
from command_line import document, done, run
from written_set import write_set

import steelyard_eval as sy
from steelyard.base.errors import DataError
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.next_steps import spelled

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


def test_a_choice_stands_for_all_later_commands_until_it_is_taken_out(folder):
    done("compare", folder, "bm25, fts", "--embedder", "none")
    assert about(folder)["embedder"] == "none"
    assert "model" not in document("recommend", folder)["provenance"]
    done("recommend", folder, "--embedder", "lsa")
    assert about(folder)["embedder"] == "lsa"
    done("compare", folder, "bm25", "--embedder", "auto")
    assert "embedder" not in about(folder)


def test_a_printed_command_names_what_dataset_json_does_not(folder):
    def named(command, embedder):
        return shlex.split(spelled(command, load(folder).embedded_by(embedder), options={}))[-2:]

    assert named("judge", "none") == ["--embedder", "none"]
    done("compare", folder, "bm25", "--embedder", "none")
    assert "--embedder" not in named("judge", "none") + named("runs", "lsa")
    assert named("judge", "lsa") == ["--embedder", "lsa"]
    steps = sy.load(folder, embedder="lsa").recommend().result.answer.steps
    commands = [step.command for step in steps if step.command[:2] == ["steelyard", "judge"]]
    assert commands
    assert all(command[-2:] == ["--embedder", "lsa"] for command in commands)


@pytest.mark.parametrize("words", ["judge --list", "judge --json", "explain q1", "check", "compare bm25 nosuch"])
def test_what_only_shows_or_fails_chooses_nothing(folder, words):
    before = (folder / "dataset.json").read_bytes()
    job, *rest = words.split()
    run(job, folder, *rest, "--embedder", "none")
    assert (folder / "dataset.json").read_bytes() == before


def test_a_set_that_comes_with_the_package_is_never_written():
    before = (starter() / "dataset.json").read_bytes()
    done("compare", starter(), "bm25", "--embedder", "none")
    assert (starter() / "dataset.json").read_bytes() == before


@pytest.mark.parametrize("name", ["api", "gpt", "lsa:x", "", 3, ["lsa"]])
def test_no_file_names_an_embedder_that_asks_anybody_or_is_none(folder, name):
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", "embedder": name}))
    with pytest.raises(DataError, match="embedder"):
        load(folder)
