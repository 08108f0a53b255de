"""Labels as strangers write them, in files and in memory, and text files with a byte order mark."""

import gzip
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from steelyard.base.errors import ConfigError, DataError
from steelyard.base.files import lines, open_unpacked, read_text
from steelyard.config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.common.configurations import lists_alone
from steelyard_eval.datasets import check
from steelyard_eval.datasets.in_memory import load_dict
from steelyard_eval.extensions.usage.session import records_of
from steelyard_eval.extensions.usage.transcripts import read_ubi

BOM = "\ufeff"
CORPUS = {"a": "plum jam", "b": "fig jam", "#c": "pear jam"}
QUERIES = {"x": "plum", "y": "fig", "#z": "pear"}


def checked(folder, qrels):
    lines_of = {
        "corpus.jsonl": [{"id": id_, "text": text} for id_, text in CORPUS.items()],
        "queries.jsonl": [{"id": id_, "text": text} for id_, text in QUERIES.items()],
        "dataset.json": [{"name": "jam", "text_for_embedding": "{text}"}],
    }
    for name, records in lines_of.items():
        (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (folder / "qrels.txt").write_text(qrels, encoding="utf-8")
    report = check(folder)
    faults = [(fault.line, fault.field) for fault in report.faults]
    return faults or {query: dict(own) for query, own in report.dataset.qrels.items()}


@pytest.mark.parametrize(
    ("qrels", "right"),
    [
        ("x a 5\ny b 1", [(1, "grade")]),
        ("x a 1.0\ny b 1", {"x": {"a": 1}, "y": {"b": 1}}),
        ("x a 1,5\ny b 1", [(1, "grade")]),
        ("x a 100%\ny b 1", [(1, "grade")]),
        ("x a relevant\ny b 1", [(1, "grade")]),  # ids that are known are no names of columns
        ("query-id corpus-id score\nx a 1", {"x": {"a": 1}}),
        (f"{BOM}query-id\tcorpus-id\tscore\r\nx\ta\t2.0\r\n", {"x": {"a": 2}}),
        ("\n\nqid docno label\nx a 1", {"x": {"a": 1}}),
        ("x 0 a 1e0\ny 0 b +2\ny 0 a -1.0", {"x": {"a": 1}, "y": {"b": 2, "a": 0}}),
        ("x 0 a 1_0", [(1, "grade")]),
        ("x 0 a grade\ny 0 b 1", [(1, "grade")]),
        ("# by hand\nx 0 a 1", {"x": {"a": 1}}),
        ("x 0 a 1\n# until here\n#", {"x": {"a": 1}}),
        ("# x 0 a 1\ny 0 b 2", {"y": {"b": 2}}),
        ("#x 0 a 1\ny 0 b 2", [(1, "query")]),  # it may be a judgment, so it is not left out in silence
        ("#z 0 #c 1", {"#z": {"#c": 1}}),
        ("#z #c 1\nx a 1", {"#z": {"#c": 1}, "x": {"a": 1}}),
    ],
)
def test_every_line_of_labels_is_read_or_refused_by_its_number(qrels, right, tmp_path):
    assert checked(tmp_path, qrels) == right


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


@pytest.mark.parametrize(
    "qrels",
    [
        {"x": "ab"},
        {"x": b"ab"},
        {"x": np.str_("ab")},
        "xa1",
        ["xa1"],
        [("x", "a")],
        {"x": {"a": 1.5}},
        {"x": {"a": np.float32(0.5)}},
        {"x": {"a": None}},
        {"#q": ["a"]},
        [[]],
        pd.DataFrame({"query": ["x"], "entry": ["a"], "grade": [float("nan")]}),
    ],
    ids=str,
)
def test_labels_that_would_be_read_as_others_are_refused(qrels):
    with pytest.raises((ConfigError, DataError)):
        load_dict({"corpus": CORPUS, "queries": QUERIES, "qrels": qrels})


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
