"""`import steelyard_eval as sy`: every job from one object, loaded from a folder, tables or a dictionary."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from shared import STARTER, tabled

import steelyard_eval as sy

STRATEGY = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def records():
    """The starter set as plain objects, read by json alone."""
    folder = STARTER
    corpus, queries = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").split("\n") if line]
        for name in ("corpus", "queries")
    )
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, entry, grade = line.split()
        qrels.setdefault(query, {})[entry] = int(grade)
    return corpus, queries, qrels


@tabled
def test_the_import_loads_nothing_heavy(module, heavy):
    code = f"import sys, {module}; print(sorted({set(heavy)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_names_of_the_package_survive_their_own_use(data):
    # a submodule that is imported takes the place of a function of the same name
    assert callable(sy.load)
    assert callable(sy.demo)
    assert sy.HttpSearch.__name__ == "HttpSearch"
    assert isinstance(data, sy.Workbench)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sy.nothing  # noqa: B018 -- the access is what is tested


def test_tables_dictionaries_and_the_folder_give_the_same_values(data, records, tmp_path):
    corpus, queries, qrels = records
    about = json.loads((STARTER / "dataset.json").read_text())
    vectors = {"minilm": [np.load(STARTER / f"{side}.minilm.f16.npy") for side in ("corpus", "queries")]}
    rows = [(query, entry, grade) for query, own in qrels.items() for entry, grade in own.items()]
    tables = {
        "corpus": pd.DataFrame(corpus),
        "queries": pd.DataFrame(queries),
        "qrels": pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]),
    }
    shared = {name: about[name] for name in ("as_of", "text_for_embedding")} | {"vectors": vectors}
    expected = data.compare("bm25, vector, moltnet", timed=False).values
    for given in (tables, {"corpus": corpus, "queries": queries, "qrels": qrels}):
        found = sy.load({**given, **shared}).compare("bm25, vector, moltnet", timed=False).values
        for label, metrics in expected.items():
            assert found[label]["nDCG@10"].tolist() == metrics["nDCG@10"].tolist()


def test_numbers_missing_values_and_dates_of_tables_are_read():
    corpus = pd.DataFrame(
        {
            "id": [1, 2],
            "text": ["rotate the keys", "restore the backup"],
            "importance": [0.5, None],
            "created_at": [pd.Timestamp("2026-03-01"), pd.NaT],
            "tags": [["auth"], None],
        }
    )
    found = sy.load(corpus, {"7": "keys"}, {"7": ["1"]}).dataset
    assert [entry.id for entry in found.entries] == ["1", "2"]
    assert found.entries[0].created_at == 1772323200.0  # date -u -d 2026-03-01 +%s
    assert (found.entries[1].created_at, found.entries[1].importance, found.entries[1].tags) == (None, None, ())
    assert found.qrels == {"7": {"1": 1}}


def test_faults_in_memory_are_named_with_their_rows():
    with pytest.raises(sy.DataError, match=r"(?s)3 faults.*corpus.jsonl:2.*qrels.txt:1.*queries.jsonl:1"):
        sy.load([{"id": "a", "text": "x"}, {"text": "y"}], {"q": " "}, [("q", "gone", 1)])


def test_a_folder_that_happens_to_be_there_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "qrels.tsv").write_text("not judgments")
    monkeypatch.chdir(tmp_path)
    assert sy.load({"m1": "rotate the keys"}, {"q1": "keys"}, {"q1": ["m1"]}).dataset.qrels == {"q1": {"m1": 1}}


@tabled
def test_a_missing_part_is_named(source, rule):
    with pytest.raises(sy.ConfigError, match=rule):
        sy.load(source)


@pytest.fixture(scope="module")
def made(data):
    query = data.dataset.queries[0].id
    return {
        "check": data.check(),
        "compare": data.compare("bm25, vector", timed=False),
        "tune": data.tune("rrf(bm25, vector)", timed=False),
        "explain": data.explain(query, STRATEGY, "bm25", limit=3),
        "search": data.search(query, STRATEGY, limit=3),
    }


@pytest.mark.parametrize("job", ["check", "compare", "tune", "explain", "search"])
def test_every_result_has_a_frame_a_page_a_figure_and_a_file(made, job, tmp_path):
    result = made[job]
    assert len(result.to_frame())
    assert "<" in result._repr_html_()
    assert job == "check" or len(result.plot().axes)
    result.save(tmp_path / "result.json")
    json.loads((tmp_path / "result.json").read_text())
