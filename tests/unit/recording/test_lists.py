"""Lists of other engines as retrievers, with ir_measures as a witness; lists in documents are those of runs."""

import json
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
from ir_measures import nDCG
from shared import STARTER, done

import steelyard_eval as sy
from steelyard import Entry, Searcher, Vault
from steelyard.table.signal_table import TagSets
from steelyard.testing import random_table
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.compare import compare
from steelyard_eval.compare.list_contenders import AnsweredLists, ListContender
from steelyard_eval.compare.list_recording import record_lists, save_lists
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.recording import replay as kept
from steelyard_eval.recording.disk import load as open_folder
from steelyard_eval.recording.replay import ShownLists, only, ordered, rows_by_query

DEPTH = 30


@pytest.fixture(scope="module")
def engines(dataset):
    """Two lists of thirty for each query, as engines that are not ours give them: relevant entries score more."""
    rng, ids = np.random.default_rng(0), [entry.id for entry in dataset.entries]

    def drawn(query):
        labels = dataset.qrels.get(query.id, {})
        scores = {id_: float(rng.random()) + 0.6 * (labels.get(id_, 0) > 0) for id_ in ids}
        return sorted(scores.items(), key=lambda one: -one[1])[:DEPTH]

    return {name: [drawn(query) for query in dataset.queries] for name in ("words", "dense")}


@pytest.fixture(scope="module")
def runs(dataset, engines, tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    for name, found in engines.items():
        rows = [
            f"{query.id} Q0 {id_} {rank} {score!r} {name}"
            for query, own in zip(dataset.queries, found, strict=True)
            for rank, (id_, score) in enumerate(own, 1)
        ]
        (folder / f"{name}.run").write_text("\n".join(rows) + "\n")
    return {name: folder / f"{name}.run" for name in engines}


@pytest.fixture(scope="module")
def recording(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("recording") / "lists"
    options = ",".join(f"{name}={path}" for name, path in runs.items())
    done("record", STARTER, out, "--runs", options)
    return out


def test_each_list_alone_has_the_value_of_its_run(dataset, runs, recording):
    found = compare(dataset, recording=recording)
    assert list(found.values) == ["dense", "words", "rrf(dense, words, k=60)"]
    qrels = [ir_measures.Qrel(q, e, g) for q, own in dataset.qrels.items() for e, g in own.items()]
    for name, path in runs.items():
        rows = ir_measures.iter_calc([nDCG @ 10], qrels, ir_measures.read_trec_run(str(path)))
        values = {row.query_id: row.value for row in rows}
        expected = [values[q] for q in found.queries]
        assert found.values[name]["nDCG@10"].tolist() == pytest.approx(expected, abs=1e-9)


def test_the_recording_holds_scores_and_places_as_given(dataset, engines, recording):
    table = open_folder(recording)
    for at, query in enumerate(dataset.queries):
        if query.split == "log":
            continue
        own = only(table, [query.id])
        for name, found in engines.items():
            values, places = own.columns[name], own.positions[name]
            held = {own.entries[e]: (v, p) for e, v, p in zip(own.entry, values, places, strict=True) if p}
            assert held == {id_: (score, rank) for rank, (id_, score) in enumerate(found[at], 1)}


def test_fewer_lists_than_queries_are_not_recorded(dataset):
    short = ListContender("short", "python", "", lambda *_: AnsweredLists([[("a", 1.0)]], []))
    with pytest.raises(ValueError, match="shorter"):
        record_lists(dataset, {"short": short})


def test_what_a_recording_of_lists_cannot_be_asked_is_refused(dataset, runs, recording, tmp_path):
    dense, out = {"dense": str(runs["dense"])}, tmp_path / "x"
    other = replace(dataset, sha256="0" * 64, entries=(*dataset.entries, Entry("more")))
    found = recommend(dataset, only="rrf(words, dense)", recording=recording)
    table = open_folder(recording)
    found.save_weights(tmp_path / "w.json")
    assert json.loads((tmp_path / "w.json").read_text())["system"] == "lists"
    mistakes = [
        (lambda: recommend(dataset, recording=recording), "--current: dense, words"),
        (lambda: compare(dataset, "echovault", recording=recording), r"\(dense, words\);"),
        (lambda: compare(dataset, "rrf(wrods, dense)", recording=recording), "fusion 'wrods'; did"),
        (lambda: compare(other, recording=recording), "is of the data set"),
        (lambda: Searcher(Vault(":memory:"), found.config), "search cannot query"),
        (lambda: only(only(table, [dataset.queries[0].id]), [dataset.queries[7].id]), "in the recording"),
        (lambda: save_lists(dataset, {"far": lambda query: [("a", 0.1), ("b", 0.7)]}, out), "larger score"),
        (lambda: save_lists(dataset, f"words={runs['words']}, rrf(bm25, vector)", out), r"^rrf\(bm25, vector"),
        *(
            (lambda name=name: save_lists(dataset, {name: dense["dense"]}, out), "valid list name")
            for name in ("recency", "rrf", "tfidf", "my list", "2nd", "l\u00e4ngs")
        ),
    ]
    for wrong, why in mistakes:
        with pytest.raises((sy.ConfigError, sy.DataError), match=why):
            wrong()


def test_a_recording_of_our_own_retrievers_has_the_values_of_a_search_and_no_depth_beyond_it(dataset, tmp_path):
    out = tmp_path / "own"
    done("record", STARTER, out, "--systems", "plain", "--split", "all")
    strategy = "weighted_sum(0.3*fts, 0.7*vector, normalize=minmax)"
    recording = out / "plain.documented"
    replayed = compare(dataset, strategy, recording=recording, timed=False)
    searched = compare(dataset, strategy, timed=False)
    assert replayed.values[strategy]["nDCG@10"].tolist() == searched.values[strategy]["nDCG@10"].tolist()
    assert replayed.result.rows[0].cost.embedded == len(replayed.queries)
    # A depth of 100, as it was recorded; twice that is tried in a live search.
    tuned = recommend(dataset, only="rrf(fts, vector)", recording=recording).result
    assert tuned.row(tuned.provenance.baseline).depths["fts"] == 100
    assert {row.depths["fts"] for row in tuned.rows} <= {50, 100}


def test_some_queries_of_a_recording_keep_their_own_facts(dataset):
    table = random_table(np.random.default_rng(3), columns=("fts", "vector"))
    tags = TagSets.of([("a", "b"), (), ("c",), ("b",)], {})
    queries = table.queries[:4]
    asked = replace(only(table, queries).query_facts, tags=tags)
    some = only(replace(only(table, queries), query_facts=asked), [queries[2], queries[0], queries[1]])
    assert some.query_facts.tags.offsets.tolist() == [0, 1, 3, 3]
    assert some.query_facts.tags.codes.tolist() == [2, 0, 1]
    assert some.offsets.tolist() == np.cumsum([0, *np.diff(table.offsets)[[2, 0, 1]]]).tolist()


@pytest.fixture(scope="module")
def document(data, tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return data.compare("fts, echovault, moltnet", current="echovault", timed=False, write_runs=runs).result, runs


def test_the_lists_are_those_of_the_runs(document):
    result, runs = document
    run = (runs / "moltnet.documented.run").read_text("utf-8").splitlines()
    for query in result.queries:
        found = query.lists["moltnet"].entries
        wanted = [line.split()[2] for line in run if line.split()[0] == query.id]
        assert found == wanted[: len(found)]
        assert len(found) == min(len(wanted), 10)


def test_what_the_signals_add_is_the_score(document):
    for query in document[0].queries:
        for found in query.lists.values():
            for at, score in enumerate(found.scores):
                assert sum(own[at] for own in found.parts.values()) == pytest.approx(score, rel=1e-3)


def test_the_baseline_comes_first_then_the_best(document):
    means = {row.label: row.means["nDCG@10"].mean for row in document[0].rows}
    labels = list(document[0].queries[0].lists)
    assert labels[0] == "echovault"
    assert means[labels[1]] > means[labels[2]]
    assert ordered({"a": 0.1, "b": 0.3, "c": 0.2}, ["c"]) == ["c", "b", "a"]


def test_a_document_has_two_lists_and_more_only_below_the_limit(data, document, monkeypatch):
    queries = data.dataset.queries
    ranked = Ranked.of([query.id for query in queries], [["m1"] for _ in queries])
    made = [(label, lambda: ShownLists(ranked)) for label in "abcd"]
    monkeypatch.setattr(kept, "MAX_PLACES", 0)
    assert list(rows_by_query(data.dataset, queries, {}, made)[0][0].lists) == ["a", "b"]
    monkeypatch.setattr(kept, "MAX_PLACES", 3 * 10 * len(queries))
    assert list(rows_by_query(data.dataset, queries, {}, made)[0][0].lists) == ["a", "b", "c"]


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_the_command_of_a_comparison_makes_it_again(embedder, tmp_path):
    made = sy.load(STARTER, embedder=embedder).compare("fts, echovault", current="echovault", timed=False)
    job, *words = made.to_json()["provenance"]["command"]
    assert job == "steelyard"
    again = json.loads(done(*words, "--json", "--out", tmp_path / "again.json").stdout)
    assert (again["provenance"], again["answer"]) == (made.record["provenance"], made.record["answer"])
    kept = [[{**row, "cost": None} for row in found["rows"]] for found in (again, made.record)]
    assert kept[0] == kept[1]
