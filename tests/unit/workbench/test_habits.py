"""What people of this field bring: tables, transformers and runs, by the names that PyTerrier, ranx and
ir_datasets give them. Where a library is not installed, by the contract that its documentation has."""

import importlib.util
import json
import subprocess
import sys
from collections import namedtuple

import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError

TEXTS = {"m1": "rotate the keys every month", "m2": "coffee is in the kitchen", "m3": "keys of the kitchen door"}
QRELS = [("q1", "m1", 2), ("q2", "m2", 1)]
QUERIES = {"q1": "rotate keys", "q2": "coffee kitchen"}


@pytest.fixture(scope="module")
def data():
    return sy.load({"corpus": TEXTS, "queries": QUERIES, "qrels": QRELS})


@pytest.mark.parametrize(
    ("doc", "query", "text", "columns"),
    [
        ("docno", "qid", "query", ("qid", "docno", "label")),  # PyTerrier
        ("doc_id", "query_id", "text", ("query_id", "doc_id", "relevance")),  # ir_datasets and ir_measures
    ],
)
def test_tables_load_as_they_are(data, doc, query, text, columns):
    corpus = pd.DataFrame([{doc: id_, "text": own} for id_, own in TEXTS.items()])
    queries = pd.DataFrame([{query: id_, text: own} for id_, own in QUERIES.items()])
    loaded = sy.load(corpus, queries, pd.DataFrame(QRELS, columns=columns)).dataset
    assert [(one.id, one.text) for one in loaded.entries] == list(TEXTS.items())
    assert [(one.id, one.text) for one in loaded.queries] == list(QUERIES.items())
    assert loaded.qrels == data.dataset.qrels


Doc = namedtuple("Doc", "doc_id text")
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")


class Topic(namedtuple("Topic", "query_id text")):
    def default_text(self):
        return self.text


class IrDataset:
    """As https://ir-datasets.com/python.html has it: iterators of named tuples."""

    def docs_iter(self):
        return iter([Doc(*pair) for pair in TEXTS.items()])

    def queries_iter(self):
        return iter([Topic(*pair) for pair in QUERIES.items()])

    def qrels_iter(self):
        return iter([Qrel(*own, "0") for own in QRELS])

    def has_qrels(self):
        return True


def test_a_data_set_that_ir_datasets_has_loaded(data):
    loaded = sy.load(IrDataset()).dataset
    assert [one.text for one in loaded.entries] == list(TEXTS.values())
    assert loaded.qrels == data.dataset.qrels


class Pipeline:
    """As PyTerrier's documentation has it: a table of queries in, a table of results out."""

    def transform(self, topics):
        assert list(topics.columns) == ["qid", "query"]
        rows = [(qid, docno, score) for qid in topics["qid"] for docno, score in (("m2", 1.5), ("m1", 2.5))]
        return pd.DataFrame(rows, columns=["qid", "docno", "score"])

    def __call__(self, topics):
        return self.transform(topics)


class Run:
    """As ranx's: `to_dict` gives the scores of documents by query."""

    name = "mine"

    def to_dict(self):
        return {"q1": {"m2": 1.5, "m1": 2.5}, "q2": {"m2": 1.5, "m1": 2.5}}


def reciprocal(found):
    return {row.label: row.means["RR@10"].mean for row in found.result.rows}


def test_transformers_and_runs_are_contenders(data):
    found = data.compare([Pipeline(), Run(), "bm25"], metrics="RR@10", timed=False)
    # m1 stands first for both queries: the first query's is relevant, and the second's is second.
    means = reciprocal(found)
    assert means["Pipeline"] == means["mine"] == 0.75


def test_a_dict_of_scores_or_ids_is_a_run_and_a_dict_of_runs_has_labels(data):
    run = Run().to_dict()  # as pytrec_eval and the constructor of ranx's Run take it
    assert reciprocal(data.compare(run, "bm25", metrics="RR@10", timed=False))["run"] == 0.75
    both = {"one": {query: sorted(hits) for query, hits in run.items()}, "two": {"q1": run["q1"]}}
    assert reciprocal(data.compare(both, metrics="RR@10", timed=False)) == {"one": 0.75, "two": 0.5}


def test_contenders_may_stand_one_after_the_other(data):
    found = data.compare(Pipeline(), "bm25, fts", Run(), metrics="RR@10", timed=False)
    assert reciprocal(found) == reciprocal(
        data.compare([Pipeline(), "bm25", "fts", Run()], metrics="RR@10", timed=False)
    )
    assert len(reciprocal(found)) == 4
    with pytest.raises(ConfigError, match="is no contender"):
        data.compare(["bm25"], "fts", timed=False)


@pytest.mark.nightly
def test_a_run_of_ranx_is_a_contender(data):
    ranx = pytest.importorskip("ranx")
    run = ranx.Run({"q1": {"m1": 2.5, "m2": 1.5}, "q2": {"m1": 2.5, "m2": 1.5}}, name="ours")
    assert reciprocal(data.compare([run], metrics="RR@10", timed=False)) == {"ours": 0.75}


def test_a_pipeline_gets_the_filters_of_queries():
    class Scoped:
        def transform(self, topics):
            self.seen = dict(zip(topics["qid"], map(json.loads, topics["filter"]), strict=True))
            return pd.DataFrame([("q1", "m1", 1.0)], columns=["qid", "docno", "score"])

    own = {"project": "api", "tags": {"all": ["a"]}}  # as it stands in queries.jsonl
    queries = [{"id": "q1", "text": "x", "filter": own}, {"id": "q2", "text": "x"}]
    entries = [{"id": "m1", "text": "x", "project": "api"}]
    data = sy.load(entries, queries, {"q1": ["m1"], "q2": ["m1"]})
    pipeline = Scoped()
    found = data.compare({"theirs": pipeline}, timed=False)
    assert pipeline.seen == {"q1": own, "q2": {}}
    assert [notice.facts["count"] for notice in found.result.notices if notice.key == "unscoped"] == [1]


def test_what_is_no_table_is_refused(data):
    class Broken:
        def transform(self, topics):
            return [1, 2]

    with pytest.raises(ConfigError, match=r"returned \[1, 2\];"):
        data.compare([Broken()], timed=False)


def test_a_configuration_is_a_transformer(data):
    ours = sy.as_transformer(data, "bm25", limit=2)
    found = ours.transform(pd.DataFrame({"qid": ["q1", "x"], "query": ["rotate keys", "coffee"]}))
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    hits = data.search("q1", "bm25", limit=2).hits
    first = found[found.qid == "q1"]
    assert first.docno.tolist() == [hit.entry.id for hit in hits]
    assert first["rank"].tolist() == [0, 1]
    assert first.score.is_monotonic_decreasing
    assert found[found.qid == "x"].docno.tolist() == ["m2"]
    # And back: it is a contender, and as good as the configuration itself.
    pair = {"back": ours, "bm25": "bm25"}
    means = reciprocal(data.compare(pair, metrics="RR@10", limit=2, timed=False))
    assert means["back"] == means["bm25"]
    with pytest.raises(ConfigError, match="needs the columns"):
        ours.transform(pd.DataFrame({"id": ["q1"]}))


def test_it_stands_in_pipelines_where_pyterrier_is_installed():
    if importlib.util.find_spec("pyterrier") is None:
        pytest.skip("python-terrier is not installed")
    code = (
        "import pandas as pd, pyterrier as pt, steelyard_eval as sy\n"
        "corpus = {'a': 'red fox', 'b': 'red dog'}\n"
        "data = sy.load({'corpus': corpus, 'queries': {'q': 'red'}, 'qrels': [('q', 'a', 1)]})\n"
        "pipeline = sy.as_transformer(data, 'bm25') % 1\n"
        "assert isinstance(pipeline, pt.Transformer)\n"
        "print(len(pipeline(pd.DataFrame({'qid': ['q'], 'query': ['red']}))))\n"
        "found = data.compare({'theirs': pipeline}, metrics='nDCG@10', timed=False)\n"
        "print(found.to_json()['configurations'][0]['label'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "theirs"], done.stderr
