"""Contenders of every kind in one table, with ir_measures' own values."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import ir_measures
import pandas as pd
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG
from shared import tabled

from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import split_contenders
from steelyard_eval.compare import compare
from steelyard_eval.compare.contenders import read, with_newest
from steelyard_eval.explain import explain
from steelyard_eval.extensions.endpoints.http_search import HttpSearch
from steelyard_eval.measures.trec_runs import best_first, read_run

MEASURES = {str(one): one for one in (nDCG @ 10, R @ 10, P @ 5, AP @ 10, Success @ 5, RR)}


@pytest.fixture(scope="module")
def lists(dataset):
    """Ten ids a query, by a rule that no code of ours knows; some judged, some not, one not in the corpus."""
    ids, found = [entry.id for entry in dataset.entries], {}
    for at, query in enumerate(dataset.queries):
        judged = sorted(dataset.qrels[query.id])[:4]
        found[query.id] = list(dict.fromkeys([ids[(7 * at) % len(ids)], *judged, "gone", *ids[at : at + 4]]))[:10]
    return found


@pytest.fixture
def serve(endpoint):
    """Lets the endpoint answer every search by a function of its text and limit; the address."""

    def start(answer):
        def step(handler, body):
            asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
            found = answer(asked.get("q"), int(asked.get("limit", 0)))
            status, text = found if isinstance(found, tuple) else (200, json.dumps(found))
            endpoint.status(status, text)(handler, body)

        endpoint.well, endpoint.document = step, lambda path, body: body
        return endpoint.url

    return start


class TestLists:
    def test_a_run_a_table_a_function_and_an_endpoint_have_the_values_of_ir_measures(
        self, dataset, lists, serve, tmp_path
    ):
        by_text = {query.text: lists[query.id] for query in dataset.queries}
        url = serve(lambda text, limit: {"hits": [{"_id": id_} for id_ in by_text[text][:limit]]})
        rows = [(q, e, -r) for q, own in lists.items() for r, e in enumerate(own)]
        (tmp_path / "prod.run").write_text("".join(f"{q} Q0 {e} 1 {score} prod\n" for q, e, score in rows))
        contenders = {
            "run": str(tmp_path / "prod.run"),
            "table": pd.DataFrame(rows, columns=["query", "entry", "score"]).sample(frac=1, random_state=0),
            "function": lambda query: lists[query.id],
            "pairs": lambda query: [(id_, 1 / (at + 1)) for at, id_ in enumerate(lists[query.id])],
            "endpoint": f"{url}?q={{query}}&limit={{limit}}#ids=hits[*]._id",
        }
        found = compare(dataset, contenders, metrics=list(MEASURES))
        assert list(found.values) == list(contenders)
        qrels = [ir_measures.Qrel(q, e, g) for q, own in dataset.qrels.items() for e, g in own.items()]
        run = [ir_measures.ScoredDoc(*row) for row in rows]
        for name, measure in MEASURES.items():
            values = {row.query_id: row.value for row in ir_measures.iter_calc([measure], qrels, run)}
            for own in found.values.values():
                assert own[name].tolist() == pytest.approx([values[q] for q in found.queries], abs=1e-9)

    def test_ties_of_a_run_are_read_as_trec_eval_reads_them(self, dataset, tmp_path):
        # trec_eval breaks ties by id descending, and reads scores as float32: both pairs tie there
        query = dataset.queries[0].id
        path = tmp_path / "ties.run"
        path.write_text(
            f"{query} Q0 a 1 5 x\n{query} Q0 b 2 5 x\n{query} Q0 c 3 1.00000001 x\n{query} Q0 d 4 1 x\n"
        )
        order = [id_ for id_, _ in read_run(path)[query]]
        assert order == ["b", "a", "d", "c"]
        for rank, id_ in enumerate(order, 1):
            qrels = [ir_measures.Qrel(query, id_, 1)]
            assert ir_measures.calc_aggregate([RR], qrels, ir_measures.read_trec_run(str(path)))[RR] == 1 / rank

    def test_queries_without_a_list_score_0_and_are_counted(self, dataset, lists, tmp_path):
        path = tmp_path / "short.run"
        first = dataset.queries[0].id
        path.write_text("".join(f"{first} Q0 {e} 1 {-r} x\n" for r, e in enumerate(lists[first])))
        found = compare(dataset, str(path))
        assert found.values["short.run"]["nDCG@10"][1:].tolist() == [0.0] * 58
        assert any("58 of 59" in notice for notice in found.notices)

    def test_faults_of_all_contenders_are_named_together(self, dataset):
        with pytest.raises(ConfigError, match=r"'bm26'.*'bm25'.*nope\.run.*'vectr'"):
            compare(dataset, "bm26, nope.run, rrf(bm25, vectr)")

    @tabled
    def test_a_string_is_separated_outside_brackets_and_urls(self, text, parts):
        assert split_contenders(text) == parts

    @tabled
    def test_a_contender_is_read_by_its_form_and_its_label(self, text, label, kind, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("w.txt").write_text("{}")
        found = read(text)
        assert (found.label, found.kind) == (label, kind)


class Run:
    """As ranx's: `to_dict` gives the scores of documents by query."""

    name = ("of", "no", "text")

    def __init__(self, scores):
        self.scores = scores

    def to_dict(self):
        return self.scores


def frame(entry="m", score=1.0, columns=("qid", "docno", "score")):
    row = dict(zip(("qid", "docno", "score"), ("q", entry, score), strict=True))
    return pd.DataFrame([[row[name] for name in columns]], columns=list(columns), dtype=object)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (frame(columns=("qid", "qid", "docno", "score")), "several columns 'qid'; leave one"),
        (frame(columns=("qid", "docno", "score", "score")), "several columns 'score'"),
        (frame(entry="\ud800"), r"id '\\ud800' cannot be written as text"),
        (frame(entry=10**5000), "id an integer of 16610 bits cannot be written"),
        (pd.DataFrame({"a\x1b[2J": [1]}), r"the query .*; it has 'a\\x1b\[2J'"),
        (pd.DataFrame({"qid": ["q1"], "score": [1.0]}), "the entry .*docno.*; it has 'qid', 'score'"),
        (pd.DataFrame({"query": ["a"], "docno": ["m"]}), "the score .*; it has"),
        (pd.Series([1.0]), "give the scores of documents by query"),
        (Run([1]), "give the scores of documents by query"),
        (Run({"q": "m"}), "give the scores of documents by query"),
        (Run({"q": {"\ud800": 1.0}}), "cannot be written as text"),
        (Run({"q": {"m": 10**5000}}), "score an integer of 16610 bits is not a finite number"),
        ({"q": [["m"]]}, "mine returned .* which has no id"),
        (frame(score="high"), "score 'high' is not a finite number; correct it$"),
        (Run, "is a class; give one of its objects"),
        *(
            (lambda query, own=own: own, r"mine.*(return|finite)")
            for own in ("m1", [["a", "b", "c"]], [("a", "x")], 7)
        ),
        (lambda query: [("a", float("nan"))], r"mine.*(return|finite)"),
        (lambda query: ["\ud800"], "cannot be written as text"),
        (lambda query: [10**5000], "cannot be written as text"),
    ],
)
def test_odd_tables_runs_and_answers_end_in_one_message(dataset, given, rule):
    with pytest.raises((ConfigError, DataError), match=rule):
        compare(dataset, {"mine": given}, timed=False)


@pytest.mark.filterwarnings("error")
def test_scores_beyond_float32_tie_and_a_name_that_is_no_text_is_one(dataset):
    query = dataset.queries[0].id
    found = compare(dataset, [Run({query: {"a": 1e300, "b": 1e200, "c": 1.0}})], timed=False)
    assert list(found.values) == ["('of', 'no', 'text')"]
    assert best_first([("a", 1e300), ("b", 1e200), ("c", 1.0)]) == [("b", 1e200), ("a", 1e300), ("c", 1.0)]


class TestEndpoints:
    def test_a_post_body_carries_query_and_limit_and_a_path_finds_ids(self, dataset, serve, endpoint):
        hits = [{"_id": "b", "_score": 2.5}, {"_id": "a", "_score": 1}]
        url = serve(lambda *_: {"hits": {"hits": hits}})
        body = '{"query": {"match": {"text": "about {query}"}}, "size": "{limit}"}'
        query = dataset.queries[0]
        assert HttpSearch(url, body, "$.hits.hits[*]._id").ask(query, 7) == ["b", "a"]
        (request,) = endpoint.requests
        assert request[-1] == {"query": {"match": {"text": f"about {query.text}"}}, "size": 7}

    def test_a_query_is_text_wherever_it_stands(self, serve):
        seen = []
        url = serve(lambda text, limit: seen.append((text, limit)) or [])
        hostile = "a&limit=9#x {limit} {query} \u00e9/../"
        HttpSearch.of(f"{url}?q={{query}}&limit={{limit}}").ask(Query(hostile), 3)
        assert seen == [(hostile, 3)]

    @tabled
    def test_an_answer_that_cannot_be_used_ends_the_comparison_with_the_query(
        self, dataset, serve, status, text, rule
    ):
        url = serve(lambda *_: (status, text))
        with pytest.raises(DataError, match=f"query 'q01': .*{rule}"):
            compare(dataset, f"{url}?q={{query}}")

    def test_an_endpoint_that_nobody_serves_is_an_error_of_the_environment(self, dataset):
        with pytest.raises(MachineError, match="cannot be reached"):
            compare(dataset, "http://127.0.0.1:9/search?q={query}")

    @tabled
    def test_what_cannot_be_asked_is_refused_before_anything_runs(self, text, rule):
        with pytest.raises(ConfigError, match=rule):
            read(text)


def test_a_ranking_is_explained_against_lists_by_places_alone(dataset, lists):
    query = dataset.queries[0].id
    found = explain(dataset, query, "bm25", lambda asked: lists[asked.id], embedder="none").record
    before, after = found["configurations"]
    assert [entry["id"] for entry in after["entries"]] == lists[query]
    assert all(entry["signals"] == {} for entry in after["entries"])
    assert all(change["by"] is None for change in found["changes"])
    kinds = {change["id"]: change["kind"] for change in found["changes"]}
    assert kinds["gone"] == "entered"
    assert {e["id"] for e in before["entries"]} - set(lists[query]) == {i for i, k in kinds.items() if k == "left"}


def test_the_newest_generation_of_each_named_system_or_of_all_joins():
    assert with_newest("soleri[vector.lift=0], bm25")[2:] == ["soleri:newest"]
    assert with_newest(["mine=soleri:newest", "soleri"])[2:] == []
    assert {"echovault:newest", "moltnet:newest", "soleri:newest"} <= {*with_newest(None)[6:]}
