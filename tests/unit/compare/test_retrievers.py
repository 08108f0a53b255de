"""Retrievers in Python as contenders, written after the interfaces of LangChain and LlamaIndex."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.base import errors
from steelyard.memory.query import Query
from steelyard_eval.compare.contenders import read

CORPUS = {"m1": "rotate the keys", "m2": "brew the coffee", "m3": "retry with jitter"}
QUERIES = {"q1": "keys", "q2": "coffee"}
QRELS = {"q1": ["m1"], "q2": ["m2"]}
FOUND = {"keys": ["m1", "m3"], "coffee": ["m3", "m2"]}
"""By hand: the first query has its entry at rank 1, the second at rank 2, which is worth 1 / log2(3) = 0.6309."""


@dataclass
class Document:
    """As LangChain has it: an id that may be its own, and metadata."""

    page_content: str = ""
    id: str | None = None
    metadata: dict = field(default_factory=dict)


@dataclass
class NodeWithScore:
    """As LlamaIndex has it: a node inside, with the score beside it."""

    node: object
    score: float | None = None


@dataclass
class Node:
    node_id: str
    metadata: dict = field(default_factory=dict)


class LangChain:
    """Runnables have transform, too, which takes no table."""

    def invoke(self, text):
        return [Document(id=f"chunk-{at}", metadata={"doc_id": id_}) for at, id_ in enumerate(FOUND[text])]

    def transform(self, texts):
        raise AssertionError


class OldLangChain:
    def get_relevant_documents(self, query):
        return [Document(metadata={"id": id_}) for id_ in FOUND[query]]


class LlamaIndex:
    """Components have to_dict, too, which is no run."""

    def retrieve(self, text):
        return [NodeWithScore(Node("n", {"doc_id": id_}), 0.9 - at / 10) for at, id_ in enumerate(FOUND[text])]

    def to_dict(self):
        raise AssertionError


def plain(text: str):
    return FOUND[text.lower()]


CONTENDERS = [
    LangChain(),
    OldLangChain(),
    LlamaIndex(),
    plain,
    lambda query: FOUND[query.text],
    lambda query: [(Document(metadata={"id": id_}), 0.5) for id_ in FOUND[query.text]],
    lambda query: {"documents": [{"id": id_, "score": 2 - at} for at, id_ in enumerate(FOUND[query.text])]},
    lambda query: np.array(FOUND[query.text]),
]


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize("labelled", [False, True])
def test_a_retriever_is_a_contender_as_it_is(contender, labelled):
    data = sy.load(CORPUS, QUERIES, QRELS, embedder="none")
    found = data.compare({"mine": contender} if labelled else [contender], timed=False).per_query()
    assert found.iloc[:, -1].round(4).tolist() == [1.0, 0.6309]


class Client:
    pass


@pytest.mark.parametrize(
    ("contender", "line"),
    [
        (object(), "lambda query: "),
        (Client, "Client(...)"),
        (lambda text: FOUND[text.lower()], "lambda query: search(query.text)"),
        (lambda query, limit: FOUND[query.text], "lambda query: search(query.text)"),
        (lambda query: "m1", "lambda query: "),
        (lambda query: [Document("no id")], "lambda query: "),
        (lambda query: {"a": [1], "b": [2]}, "lambda query: "),
    ],
)
def test_what_is_no_contender_says_how_to_wrap_it(contender, line):
    data = sy.load(CORPUS, QUERIES, QRELS, embedder="none")
    with pytest.raises(sy.ConfigError) as told:
        data.compare([contender], timed=False)
    assert line in str(told.value)
    assert "\n" not in str(told.value)


def test_a_query_without_a_text_is_asked_of_nobody():
    asked = []
    queries = [Query("keys", id="q1"), Query("", id="q2"), Query(" \t", id="q3"), Query(float("nan"), id="q4")]
    answers = read(lambda query: asked.append(query.text) or ["m1"]).answers(
        queries, 10, sy.load(CORPUS, {"q1": "keys"}, {"q1": ["m1"]}, embedder="none").dataset
    )
    assert asked == ["keys"]
    assert [len(places) for places in answers.lists] == [1, 0, 0, 0]
    assert any(notice.facts["count"] == 3 for notice in answers.notices)


@pytest.mark.parametrize(
    "queries",
    [{"q1": None}, {"q1": float("nan")}, {"q1": ""}, {"q1": 3}, pd.DataFrame({"id": ["q1"], "text": [np.nan]})],
)
def test_a_query_that_is_no_text_is_a_fault_of_the_data(queries):
    with pytest.raises(sy.DataError, match="text"):
        sy.load(CORPUS, queries, {"q1": ["m1"]}, embedder="none")


def test_errors_are_caught_by_the_names_of_the_package():
    own = {name for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__}
    names = {name for name in own if name.endswith("Error")}
    assert {"SteelyardError", "ConfigError", "DataError"} < names <= {*sy.__all__}
    assert all(getattr(sy, name) is getattr(errors, name) for name in names)
