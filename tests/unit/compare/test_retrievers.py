"""What people of this field bring: retrievers, runs and tables, after the interfaces of their libraries."""

import json
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace as Named

import numpy as np
import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.memory.query import Query
from steelyard_eval.compare.contenders import read
from steelyard_eval.vaults import index_dataset

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


def of_library(name, **methods):
    """An object as a library has it."""
    return type(name, (), methods)()


def refuse(self, *_):
    raise AssertionError


def chunks(self, text):
    return [Document(id=f"chunk-{at}", metadata={"doc_id": id_}) for at, id_ in enumerate(FOUND[text])]


def nodes(self, text):
    """As LlamaIndex has them: a node inside, with the score beside it."""
    held = [Named(node_id="n", metadata={"doc_id": id_}) for id_ in FOUND[text]]
    return [Named(node=node, score=0.9 - at / 10) for at, node in enumerate(held)]


def plain(text: str):
    return FOUND[text.lower()]


class Pipeline:
    """As PyTerrier's documentation has it: a table of queries in, a table of results out."""

    def transform(self, topics):
        self.seen = topics
        rows = [
            (qid, id_, 2.5 - at)
            for qid, text in zip(topics["qid"], topics["query"], strict=True)
            for at, id_ in enumerate(FOUND[text])
        ]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])

    def __call__(self, topics):
        return self.transform(topics)


SCORES = {query: {id_: 2.5 - at for at, id_ in enumerate(FOUND[text])} for query, text in QUERIES.items()}
"""As pytrec_eval and the constructor of ranx's Run take it."""


CONTENDERS = [
    of_library("LangChain", invoke=chunks, transform=refuse),  # it transforms no table
    of_library(
        "OldLangChain",
        get_relevant_documents=lambda self, query: [Document(metadata={"id": id_}) for id_ in FOUND[query]],
    ),
    of_library("LlamaIndex", retrieve=nodes, to_dict=refuse),  # components have to_dict, too, which is no run
    of_library(
        "Haystack",
        run=lambda self, *, query, top_k=None: {"documents": [Document(id=id_) for id_ in FOUND[query]]},
        to_dict=lambda self: {"type": "InMemoryBM25Retriever"},
    ),
    Pipeline(),
    of_library("Run", to_dict=lambda self: SCORES),  # as ranx's: the scores of documents by query
    plain,
    lambda query: FOUND[query.text],
    lambda query: [(Document(metadata={"id": id_}), 0.5) for id_ in FOUND[query.text]],
    lambda query: {"documents": [{"id": id_, "score": 2 - at} for at, id_ in enumerate(FOUND[query.text])]},
    lambda query: np.array(FOUND[query.text]),
]


@pytest.fixture(scope="module")
def data():
    return sy.load(CORPUS, QUERIES, QRELS, embedder="none")


@pytest.mark.parametrize("contender", CONTENDERS)
def test_a_retriever_is_a_contender_as_it_is(data, contender):
    for given, label in (({"mine": contender}, "mine"), ([contender], None)):
        found = data.compare(given, timed=False).per_query()
        assert found[label or found.columns[-1]].round(4).tolist() == [1.0, 0.6309]


def test_a_dict_of_scores_or_ids_is_a_run_and_a_dict_of_runs_has_labels(data):
    lists = {query: [*hits] for query, hits in SCORES.items()}
    for given, label in (((SCORES, "bm25"), "run"), (({"one": lists, "two": SCORES},), "one")):
        found = data.compare(*given, timed=False).per_query()
        assert found[label].round(4).tolist() == [1.0, 0.6309]


def test_a_pipeline_gets_the_filters_of_queries():
    own = {"project": "api", "tags": {"all": ["a"]}}  # as it stands in queries.jsonl
    queries = [{"id": "q1", "text": "keys", "filter": own}, {"id": "q2", "text": "coffee"}]
    entries = [{"id": "m1", "text": "x", "project": "api"}, {"id": "m3", "text": "x"}]
    pipeline = Pipeline()
    found = sy.load(entries, queries, {"q1": ["m1"], "q2": ["m1"]}).compare({"theirs": pipeline}, timed=False)
    assert [*map(json.loads, pipeline.seen["filter"])] == [own, {}]
    assert [notice.facts["count"] for notice in found.result.notices if notice.key == "unscoped"] == [1]


def test_a_configuration_is_a_transformer(data):
    ours = sy.as_transformer(data, "bm25", limit=2)
    found = ours.transform(pd.DataFrame({"qid": ["q1", "x"], "query": ["rotate keys", "coffee"]}))
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    assert found[["qid", "docno", "rank"]].values.tolist() == [["q1", "m1", 0], ["x", "m2", 0]]
    back = data.compare({"back": ours, "bm25": "bm25"}, limit=2, timed=False).per_query()
    assert back["back"].tolist() == back["bm25"].tolist()
    with pytest.raises(sy.ConfigError, match="needs the columns"):
        ours.transform(pd.DataFrame({"id": ["q1"]}))


MODULES = [
    ("langchain", "langchain_core.documents"),
    ("llama_index", "llama_index.core.schema"),
    ("haystack", "haystack"),
]


@pytest.mark.parametrize(("name", "module"), MODULES)
def test_a_framework_that_is_absent_is_named(data, name, module, tmp_path, monkeypatch):
    index_dataset(data.dataset, str(tmp_path / "v.db"), "none")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(sy.MachineError, match="pip install"):
        sy.as_retriever("bm25", tmp_path / "v.db", name)
    with pytest.raises(sy.ConfigError, match="haystack"):
        sy.as_retriever("bm25", tmp_path / "v.db", name + "s")


PYTERRIER = ("docno", "qid", "query", ("qid", "docno", "label"))
IR_MEASURES = ("doc_id", "query_id", "text", ("query_id", "doc_id", "relevance"))  # and ir_datasets


@pytest.mark.parametrize(("doc", "query", "text", "columns"), [PYTERRIER, IR_MEASURES])
def test_tables_load_as_they_are(data, doc, query, text, columns):
    corpus = pd.DataFrame([{doc: id_, "text": own} for id_, own in CORPUS.items()])
    queries = pd.DataFrame([{query: id_, text: own} for id_, own in QUERIES.items()])
    labels = pd.DataFrame([("q1", "m1", 1), ("q2", "m2", 1)], columns=columns)
    loaded = sy.load(corpus, queries, labels).dataset
    assert [(one.id, one.text) for one in loaded.entries] == list(CORPUS.items())
    assert [(one.id, one.text) for one in loaded.queries] == list(QUERIES.items())
    assert loaded.qrels == data.dataset.qrels


def test_a_data_set_that_ir_datasets_has_loaded(data):
    """As https://ir-datasets.com/python.html has it: iterators of named tuples."""
    doc, topic = namedtuple("Doc", "doc_id text"), namedtuple("Topic", "query_id text")
    topic.default_text = lambda self: self.text
    qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
    held = {"docs": [doc(*pair) for pair in CORPUS.items()], "queries": [topic(*pair) for pair in QUERIES.items()]}
    held["qrels"] = [qrel("q1", "m1", 1, "0"), qrel("q2", "m2", 1, "0")]
    calls = {f"{name}_iter": lambda rows=rows: iter(rows) for name, rows in held.items()}
    loaded = sy.load(Named(**calls, has_qrels=lambda: True)).dataset
    assert [one.text for one in loaded.entries] == list(CORPUS.values())
    assert loaded.qrels == data.dataset.qrels


@pytest.mark.parametrize(
    ("contender", "line"),
    [
        (object(), "lambda query: "),
        (Pipeline, "Pipeline(...)"),
        (lambda text: FOUND[text.lower()], "lambda query: search(query.text)"),
        (lambda query, limit: FOUND[query.text], "lambda query: search(query.text)"),
        (lambda query: "m1", "lambda query: "),
        (lambda query: [Document("no id")], "lambda query: "),
        (lambda query: {"a": [1], "b": [2]}, "lambda query: "),
    ],
)
def test_what_is_no_contender_says_how_to_wrap_it(data, contender, line):
    with pytest.raises(sy.ConfigError) as told:
        data.compare([contender], timed=False)
    assert line in str(told.value)
    assert "\n" not in str(told.value)


def test_a_query_without_a_text_is_asked_of_nobody(data):
    asked = []
    queries = [Query("keys", id="q1"), Query("", id="q2"), Query(" \t", id="q3"), Query(float("nan"), id="q4")]
    contender = read(lambda query: asked.append(query.text) or ["m1"])
    answers = contender.answers(queries, 10, data.dataset)
    assert asked == ["keys"]
    assert [len(places) for places in answers.lists] == [1, 0, 0, 0]
    assert any(notice.facts["count"] == 3 for notice in answers.notices)


NO_TEXTS = [{"q1": None}, {"q1": float("nan")}, {"q1": ""}, {"q1": 3}]


@pytest.mark.parametrize("queries", [*NO_TEXTS, pd.DataFrame({"id": ["q1"], "text": [np.nan]})])
def test_a_query_that_is_no_text_is_a_fault_of_the_data(queries):
    with pytest.raises(sy.DataError, match="text"):
        sy.load(CORPUS, queries, {"q1": ["m1"]}, embedder="none")
