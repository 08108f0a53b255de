"""Labels as strangers write them, in files and in memory; labels that were given twice; marks before texts."""

import gzip
import json
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from beside import table
from sklearn.metrics import cohen_kappa_score
from written_set import write_set

from steelyard.base.errors import ConfigError, DataError
from steelyard.base.files import lines, open_unpacked, read_text
from steelyard.config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.common.configurations import lists_alone
from steelyard_eval.datasets import check, load
from steelyard_eval.datasets.in_memory import load_dict
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.datasets.second_labels import judged_twice
from steelyard_eval.extensions.usage.session import records_of
from steelyard_eval.extensions.usage.transcripts import read_ubi

BOM = "\ufeff"
CORPUS = {"a": "plum jam", "b": "fig jam", "#c": "pear jam"}
QUERIES = {"x": "plum", "y": "fig", "#z": "pear"}


def checked(folder, qrels):
    corpus, queries = ([{"id": id_, "text": text} for id_, text in own.items()] for own in (CORPUS, QUERIES))
    write_set(folder, corpus, queries, qrels, text_for_embedding="{text}")
    report = check(folder)
    faults = [(fault.line, fault.field) for fault in report.faults]
    return faults or {query: dict(own) for query, own in report.dataset.qrels.items()}


@table("qrels right")
def test_every_line_of_labels_is_read_or_refused_by_its_number(qrels, right, tmp_path):
    found = checked(tmp_path, qrels)
    assert json.loads(json.dumps(found)) == right


@pytest.mark.parametrize(
    ("qrels", "right"),
    [
        ({"x": {"a": np.int64(2)}}, 2),
        ({"x": {"a": np.float32(1)}}, 1),
        ({"x": {"a": True}}, 1),
        ({"x": {"a": np.bool_(False)}}, 0),
        ({"x": ["a"]}, 1),
        ({"x": {"a"}}, 1),
        ({"x": np.array(["a"])}, 1),
        ([("x", "a", 3.0)], 3),
        (pd.DataFrame({"qid": ["x"], "docno": ["a"], "label": [True]}), 1),
        (pd.DataFrame({"query": ["x"], "entry": ["a"], "grade": np.array([2], dtype=np.uint8)}), 2),
    ],
)
def test_labels_in_memory_are_read(qrels, right):
    found = load_dict({"corpus": CORPUS, "queries": QUERIES, "qrels": qrels})
    assert {query: dict(own) for query, own in found.qrels.items()} == {"x": {"a": right}}


TEXTS = [{"x": "ab"}, {"x": b"ab"}, {"x": np.str_("ab")}, "xa1", ["xa1"], [("x", "a")], {"#q": ["a"]}, [[]]]
GRADES = [{"x": {"a": grade}} for grade in (1.5, np.float32(0.5), None)]
NAN = pd.DataFrame({"query": ["x"], "entry": ["a"], "grade": [float("nan")]})


@pytest.mark.parametrize("qrels", [*TEXTS, *GRADES, NAN], ids=str)
def test_labels_that_would_be_read_as_others_are_refused(qrels):
    with pytest.raises((ConfigError, DataError)):
        load_dict({"corpus": CORPUS, "queries": QUERIES, "qrels": qrels})


def test_second_labels_stand_beside_the_first_and_agreement_is_that_of_scikit_learn(tmp_path):
    shutil.copytree(starter(), tmp_path, ignore=shutil.ignore_patterns(".steelyard"), dirs_exist_ok=True)
    dataset = load(tmp_path)
    assert judged_twice(dataset).key == "judged_once"
    pairs = [(query, entry) for query, row in sorted(dataset.qrels.items()) for entry in row][:40]
    graded = {pair: (dataset.qrels[pair[0]][pair[1]] + at % 3) % 4 for at, pair in enumerate(pairs)}
    lines = [f"{query} 0 {entry} {grade}\n" for (query, entry), grade in graded.items()]
    (tmp_path / "second-labels.txt").write_text("".join(lines))
    found = load(tmp_path)
    assert (found.sha256, found.qrels) == (dataset.sha256, dataset.qrels)  # they decide nothing
    said = judged_twice(found)
    first = [dataset.qrels[query][entry] for query, entry in graded]
    kappa = cohen_kappa_score(first, list(graded.values()), weights="quadratic")
    assert (said.key, said.facts["count"], said.facts["low"]) == ("judged_twice", 40, kappa < 0.6)
    assert (said.facts["equal"], said.facts["kappa"]) == pytest.approx((14 / 40, kappa))
    (tmp_path / "second-labels.txt").write_text("nobody 0 nothing 1\n")
    with pytest.raises(DataError, match="second-labels"):
        load(tmp_path)


def marked(path, text):
    """A file with a mark before the text; compressed under a name in .gz."""
    data = (BOM + text).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("text", ["", "one\n\ntwo", f"one{BOM}\n"])
def test_text_is_read_behind_its_mark_and_nothing_else_is_taken(name, text, tmp_path):
    path = marked(tmp_path / name, text)
    rows = [line for line in text.split("\n") if line]
    assert read_text(path) == text and [raw.decode() for _, raw in lines(path, 100)] == rows
    with open_unpacked(path) as stream:
        assert stream.read().decode() == text


def test_what_is_read_as_text_anywhere_may_have_a_mark(tmp_path):
    config = find_system("bm25").config(10)
    weights = marked(tmp_path / "weights", json.dumps(config.to_json()))
    assert SearchConfig.load(weights) == config and not lists_alone(str(weights))
    query = {"query_id": "s1", "user_query": "plum", "query_response_hit_ids": ["a", "b"]}
    event = {"action_name": "click", "query_id": "s1", "event_attributes": {"object": {"object_id": "b"}}}
    log = marked(tmp_path / "ubi.jsonl", f"{json.dumps(query)}\n{json.dumps(event)}\n")
    [session] = read_ubi([log], None, "", Counter())
    assert session.events[1].names == ("b",)
    whole = marked(tmp_path / "spans.json", json.dumps([query, event]))
    assert [list(records_of(path, {})) for path in (log, whole)] == [[query, event]] * 2
