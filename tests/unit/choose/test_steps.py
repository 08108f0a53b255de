"""The last step of an answer: one number of labels, and never more than there are."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import tabled

import steelyard_eval as sy
from steelyard import SearchConfig, find_system, parse_strategy
from steelyard.base import extensions as extras
from steelyard_eval.choose.answer import _spoken_name, for_target, write_and_log, write_weights
from steelyard_eval.choose.duel import PairSelection
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.recording.next_steps import installed_first, label_more_step, using
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Step


def labelled(count, queries=30):
    """A set of `queries`, of which so many are judged."""
    asked = {f"q{at}": "x" for at in range(queries)}
    made = sy.load({"a": "x", "b": "y"}, asked, {"q0": ["a"]}).dataset
    return replace(made, qrels={f"q{at}": {"a": 1} for at in range(count)})


class TestSteps:
    @tabled
    def test_no_more_queries_are_asked_for_than_have_no_labels(self, judged, wanted, key, more):
        """A set that is judged as a whole is not sent to the judge."""
        (step,) = label_more_step(labelled(judged), wanted, "settle")
        assert (step.key, step.facts.get("more")) == (key, more)
        assert step.facts.get("left") in (None, 30 - judged)
        assert say(step).endswith(" to settle it") == (key != "label_more")
        assert key != "write_queries" or (step.facts["file"], step.command) == ("queries.jsonl", [])

    @tabled
    def test_what_is_only_tried_is_exported_from_its_own_file(self, verdict, kept_out, tried):
        step = for_target([], "qdrant", verdict, kept_out)[0]
        assert (step.command[2] == "search-weights.try.json") is tried

    def test_no_more_pairs_are_asked_for_than_there_are(self):
        assert (labelled(0).pairs, labelled(0, 50).pairs) == (60, 80)  # 30 queries by 2 entries
        worth, query = np.ones((2, 3)), np.zeros(3, dtype=int)
        duels = PairSelection(worth, query, np.ones((3, 2)), np.zeros(2), np.full(2, np.nan))
        assert duels.standing(np.full(3, np.nan)).enough == 3

    def test_the_query_of_a_command_can_be_pasted(self):
        # A terminal shows a line break as its escape, another query; what begins with a dash is an option.
        asked = {"q0": "two\nlines", "q1": "-x", "q2": "x" * 61, "q3": "rotate keys"}
        dataset = sy.load({"a": "x"}, asked, {"q0": ["a"]}).dataset
        assert using("search", Path("w.json"), dataset).command[3] == "rotate keys"

    @pytest.mark.parametrize("missing", [True, False])
    def test_a_model_that_is_not_installed_is_installed_first(self, monkeypatch, missing):
        monkeypatch.setattr(extras, "find_spec", lambda module: None if missing else module)
        needed = ["torch-of-ours>=1; extra == 'minilm'", "small-one; extra == 'onnx'"]
        monkeypatch.setattr("importlib.metadata.requires", lambda name: needed)
        for name, strategy in (("w.json", "rrf(bm25, vector)"), ("words.json", "bm25")):
            read_config(strategy).config(Setting(10, "minilm")).save(name)
        steps, words = (
            [Step("index_once", {}, ["steelyard", "index", "mine", "mine.db", "--weights", name])]
            for name in ("w.json", "words.json")
        )
        assert installed_first(words) == words  # what reads no vectors needs no model
        # pyproject.toml names the extra that brings MiniLM by torch "minilm", and that of its int8 form "onnx".
        install = Step("install_large", {}, ["pip", "install", "torch-of-ours>=1"])
        assert installed_first(steps) == ([install, *steps] if missing else steps)
        recommending = ["steelyard", "recommend", "mine"]
        light = [
            Step("install_light", {}, ["pip", "install", "small-one"]),
            Step("choose_light", {}, [*recommending, "--embedder", "minilm-int8"]),
        ]
        assert installed_first(steps, recommending) == ([install, *light] if missing else []) + steps


def test_only_weights_that_are_not_documented_are_called_new():
    config = find_system("soleri").config(10)
    assert _spoken_name(config) == "soleri"
    assert _spoken_name(config.with_strategy(parse_strategy("weighted_sum(0.5*tfidf, 0.5*cosine)"))).endswith(
        "new weights"
    )


# Weights files that are replaced: each is kept once beside it, and a line says how to undo that


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def weights(name):
    return find_system(name).config(10)


class TestReplacedFiles:
    def test_what_was_replaced_last_is_kept_once(self):
        out = Path("w.json")
        for held in ("mine 1", "mine 2"):
            out.write_text(held)
            assert write_weights({out: weights("bm25")}) == ["w.json: replaced; undo: cp w.json.bak w.json"]
            assert Path("w.json.bak").read_text() == held
        # the same search, whenever it was chosen: nothing is lost, so the copy stays
        out.write_text(json.dumps(weights("bm25").to_json() | {"provenance": {"by": "hand"}}))
        assert write_weights({out: weights("bm25")}) == []
        assert Path("w.json.bak").read_text() == "mine 2"
        assert SearchConfig.load(out) == weights("bm25")

    def test_files_that_are_removed_are_kept_even_if_a_new_one_has_their_search(self):
        """Somebody may search with the very file: `learn` removed search-weights.try.json without a word."""
        for name in ("vector", "bm25"):
            weights(name).save(f"{name}.json")
        gone = dict.fromkeys((Path("vector.json"), Path("bm25.json")))
        lines = write_weights({**gone, Path("new.json"): weights("bm25")})
        assert lines[0].endswith("undo: cp vector.json.bak vector.json")
        assert {path.name for path in Path().glob("*.json*")} == {"bm25.json.bak", "new.json", "vector.json.bak"}

    def test_of_which_other_data_set_a_file_was_is_said(self):
        """Default names are shared by all data sets of a folder; by hand, or of this set, it says nothing more."""
        file = Path("search-weights.json")
        for name, told in (("other", True), ("mine", False), ("", False)):
            replace(weights("fts"), provenance={"dataset": name}).save(file)
            (line,) = write_weights({file: weights("bm25")}, SimpleNamespace(name="mine"))
            assert ("'other'" in line) == told

    def test_python_logs_it(self, caplog):
        weights("bm25").save("w.json")
        assert write_and_log({Path("w.json"): weights("fts")}) == [Path("w.json")]
        assert SearchConfig.load("w.json.bak") == weights("bm25")
        assert "cp w.json.bak w.json" in caplog.text
