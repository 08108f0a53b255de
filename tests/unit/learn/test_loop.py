"""The whole loop in one command: what it writes, what it leaves alone, and that a second run changes nothing."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.gate.result import Gating
from steelyard_eval.learn import loop as module
from steelyard_eval.recording.runs import kept
from steelyard_eval.tune.recommendation import Recommendation

HISTORY = "mine/.steelyard/runs.db"


@pytest.fixture
def place(store_root, tmp_path, monkeypatch):
    """A working directory with an imported memory, its transcripts elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert run("import", store_root / "echovault-newest", "mine").exit_code == 0
    return f"transcripts:{store_root / 'transcripts'}"


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)))


def bytes_of(folder=Path()):
    """The hash of every file but those of the user's state."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "state" not in path.parts)
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in files}


def test_twice_on_the_same_input_changes_nothing_but_one_record_of_the_run(place, monkeypatch):
    monkeypatch.delenv("STEELYARD_RUNS")
    first = run("loop", "mine", "--from", place)
    assert first.exit_code == 0, first.stderr
    assert "14 searches with their lists" in first.stderr
    before = bytes_of()
    assert {"mine/feedback.transcripts.jsonl", HISTORY, "reports/loop/recommend/report.html"} <= before.keys()
    assert run("loop", "mine", "--from", place).stdout == first.stdout
    after = bytes_of()
    assert {name for name in before | after if before.get(name) != after.get(name)} == {HISTORY}
    runs = kept(load("mine"))
    assert [one.kind for one in runs] == ["loop", "loop"]
    assert runs[0].facts == runs[1].facts
    assert b"how do we hold seats" not in Path(HISTORY).read_bytes()


def test_a_machine_without_transcripts_is_no_fault_where_none_were_named(place):
    found = sy.loop("mine")
    assert any("looked at" in note for note in found.record["notes"])
    assert found.record["use"] == []
    assert found.exit_code == 0
    assert run("loop", "mine", "--from", "transcripts:none").exit_code == 2


@pytest.fixture
def shipping(monkeypatch):
    """What is recommended ships other weights."""
    config = find_system("bm25").config(10)
    config = replace(config, provenance={"verdict": "ship"})
    record = {"verdict": "ship", "sentence": "Use bm25.", "labelled": 13}
    answer = Recommendation(record, config)
    monkeypatch.setattr(module, "recommend", lambda *_, **__: answer)
    monkeypatch.setattr(Recommendation, "report", lambda *_: [])
    return config


def test_what_is_in_use_is_replaced_where_that_is_asked_for_alone(place, shipping):
    find_system("echovault").config().save("search-weights.json")
    used = Path("search-weights.json").read_bytes()
    found = sy.loop("mine", [place])
    assert found.verdict == "ship"
    assert Path("search-weights.json").read_bytes() == used
    assert SearchConfig.load("search-weights.ship.json") == shipping
    assert not found.record["adopted"]
    adopted = run("loop", "mine", "--from", place, "--adopt")
    assert adopted.exit_code == 0
    assert SearchConfig.load("search-weights.json") == shipping
    assert Path("search-weights.json.bak").read_bytes() == used
    assert "to undo: cp search-weights.json.bak search-weights.json" in adopted.stdout + adopted.stderr


def test_a_proposal_of_an_earlier_run_goes_when_it_holds_no_more(place, shipping, monkeypatch):
    sy.loop("mine", [place])
    assert Path("search-weights.ship.json").exists()
    kept = Recommendation({"verdict": "keep", "sentence": "Keep.", "labelled": 13}, shipping)
    monkeypatch.setattr(module, "recommend", lambda *_, **__: kept)
    assert sy.loop("mine", [place]).record["files"] == []
    assert not Path("search-weights.ship.json").exists()


class Gated:
    """A gate that says so of what is in use, and of what is proposed."""

    def __init__(self, used, proposed):
        self.verdicts = {True: used, False: proposed}

    def check(self, contenders=None):
        verdict = self.verdicts[contenders is None]
        return Gating({"verdict": verdict, "sentence": f"the gate: {verdict}"})


@pytest.mark.parametrize(
    ("used", "proposed", "words", "verdict", "code"),
    [
        ("pass", "pass", [], "ship", 0),
        ("pass", "fail", [], "try", 0),
        ("fail", "pass", [], "ship", 1),
        ("inconclusive", "pass", [], "ship", 0),
        ("inconclusive", "pass", ["--strict"], "ship", 3),
        ("mismatch", "pass", [], "ship", 0),
        ("mismatch", "pass", ["--strict"], "ship", 3),
    ],
)
def test_the_gate_decides_on_the_exit_code_and_on_what_ships(
    place, shipping, monkeypatch, used, proposed, words, verdict, code
):
    Path("reports").mkdir()
    Path("reports/baseline.json").write_text("{}")
    monkeypatch.setattr(module.Gate, "of", lambda *_, **__: Gated(used, proposed))
    done = run("loop", "mine", "--from", place, "--json", *words)
    assert done.exit_code == code
    record = json.loads(done.stdout)
    assert record["verdict"] == verdict
    assert record["files"] == [f"search-weights.{verdict}.json"]
