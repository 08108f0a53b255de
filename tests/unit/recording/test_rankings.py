"""The lists in documents: those of the runs, with contributions that add up, the important ones first."""

import json

import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard_eval.cli.main import main
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording import replay as kept
from steelyard_eval.recording.replay import ShownLists, ordered, rows_by_query


@pytest.fixture(scope="module")
def data():
    return sy.load(starter())


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
    made = [(label, lambda: ShownLists(sy_ranked(queries))) for label in "abcd"]
    monkeypatch.setattr(kept, "MOST", 0)
    assert list(rows_by_query(data.dataset, queries, {}, made)[0][0].lists) == ["a", "b"]
    monkeypatch.setattr(kept, "MOST", 3 * 10 * len(queries))
    assert list(rows_by_query(data.dataset, queries, {}, made)[0][0].lists) == ["a", "b", "c"]


def sy_ranked(queries):
    from steelyard_eval.measures.runs import Ranked

    return Ranked.of([query.id for query in queries], [["m1"] for _ in queries])


def run_again(document, out):
    """The document that its command makes, run as it stands."""
    job = document["provenance"]["command"]
    result = CliRunner().invoke(main, [*job[1:], "--json", "--out", str(out)])
    assert job[0] == "steelyard"
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_the_command_of_a_comparison_makes_it_again(embedder, tmp_path):
    made = sy.load(starter(), embedder=embedder).compare("fts, echovault", current="echovault", timed=False)
    again = run_again(made.to_json(), tmp_path / "again.json")
    assert (again["provenance"], again["answer"]) == (made.record["provenance"], made.record["answer"])
    kept = [[{**row, "cost": None} for row in found["rows"]] for found in (again, made.record)]
    assert kept[0] == kept[1]


def test_a_contender_that_is_known_in_python_alone_has_no_command(data):
    found = data.compare(["fts", lambda query: []], timed=False).result
    assert found.provenance.command == []
