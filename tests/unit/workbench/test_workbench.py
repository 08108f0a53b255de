"""`import steelyard_eval as sy`: every job from one object, loaded from a folder, tables or a dictionary."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, DataError
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load as load_folder
from steelyard_eval.datasets.manifest import starter

HARM = "<script>alert(1)</script>"
STRATEGY = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def data():
    return sy.load(starter())


@pytest.fixture(scope="module")
def records():
    """The starter set as plain objects, read by json alone."""
    folder = starter()
    read = [
        json.loads(line)
        for name in ("corpus", "queries")
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        if line
    ]
    corpus = [row for row in read if "title" in row]
    queries = [row for row in read if "title" not in row]
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, entry, grade = line.split()
        qrels.setdefault(query, {})[entry] = int(grade)
    return corpus, queries, qrels


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("steelyard_eval", {"numpy", "pandas", "numba", "matplotlib", "apsw"}),
        (
            "steelyard_eval.cli.main",
            {"steelyard_eval.datasets", "numba", "jsonschema_rs", "ssl", "email.utils", "rapidfuzz"},
        ),
    ],
)
def test_the_import_loads_nothing_heavy(module, heavy):
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_demo_is_workshop():
    assert (sy.demo().dataset.name, len(sy.demo().dataset.queries)) == ("workshop", 200)


def test_the_names_of_the_package_survive_their_own_use(data):
    # a submodule that is imported takes the place of a function of the same name
    assert callable(sy.load)
    assert callable(sy.demo)
    assert sy.HttpSearch.__name__ == "HttpSearch"
    assert isinstance(data, sy.Workbench)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sy.nothing  # noqa: B018 -- the access is what is tested


def test_a_data_set_prints_in_a_line(data):
    assert repr(data.dataset) == "Dataset('starter': 131 entries, 59 queries, 59 judged, and 100 queries of a log)"
    assert repr(data) == "Workbench('starter': 131 entries, 59 queries, 59 judged, and 100 queries of a log)"


def test_tables_dictionaries_and_the_folder_give_the_same_values(data, records, tmp_path):
    corpus, queries, qrels = records
    about = json.loads((starter() / "dataset.json").read_text())
    vectors = {"minilm": [np.load(starter() / f"{side}.minilm.f16.npy") for side in ("corpus", "queries")]}
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


def test_three_tables_are_enough(records):
    corpus, queries, qrels = records
    found = sy.load(pd.DataFrame(corpus), {row["id"]: row["text"] for row in queries}, qrels)

    assert len(found.dataset.entries) == len(corpus)
    assert found.dataset.qrels == qrels


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
    with pytest.raises(DataError, match=r"(?s)3 faults.*corpus.jsonl:2.*qrels.txt:1.*queries.jsonl:1"):
        sy.load([{"id": "a", "text": "x"}, {"text": "y"}], {"q": " "}, [("q", "gone", 1)])


def test_a_folder_that_happens_to_be_there_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "qrels.tsv").write_text("not judgments")
    monkeypatch.chdir(tmp_path)

    assert sy.load({"m1": "rotate the keys"}, {"q1": "keys"}, {"q1": ["m1"]}).dataset.qrels == {"q1": {"m1": 1}}


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({"corpus": {}, "querys": {}}, "unknown key 'querys'; did you mean 'queries'.*qrels is missing"),
        ([{"id": "a"}], "queries is missing; qrels is missing"),
    ],
)
def test_a_missing_part_is_named(source, rule):
    with pytest.raises(ConfigError, match=rule):
        sy.load(source)


def test_a_folder_loads_by_its_path_in_every_function(tmp_path):
    assert repr(sy.load(starter()).dataset) == repr(load_folder(starter()))
    assert list(compare(str(starter()), "bm25", timed=False).values) == ["bm25"]


def results(data):
    query = data.dataset.queries[0].id
    return {
        "check": data.check(),
        "compare": data.compare("bm25, vector", timed=False),
        "tune": data.tune("rrf(bm25, vector)", timed=False),
        "explain": data.explain(query, STRATEGY, "bm25", limit=3),
        "search": data.search(query, STRATEGY, limit=3),
    }


@pytest.fixture(scope="module")
def made(data):
    return results(data)


@pytest.mark.parametrize("job", ["check", "compare", "tune", "explain", "search"])
def test_every_result_has_a_frame_a_page_a_figure_and_a_file(made, job, tmp_path):
    result = made[job]

    assert len(result.to_frame())
    assert "<" in result._repr_html_()
    assert job == "check" or len(result.plot().axes)
    result.save(tmp_path / "result.json")
    json.loads((tmp_path / "result.json").read_text())


def test_a_search_gives_what_the_comparison_measured(data, made):
    query = data.dataset.queries[0]
    value = data.compare(STRATEGY, metrics="nDCG@3", timed=False).values[STRATEGY]["nDCG@3"][0]
    grades = [data.dataset.qrels[query.id].get(id_, 0) for id_ in made["search"].to_frame()["id"]]
    ideal = sorted(data.dataset.qrels[query.id].values(), reverse=True)[:3]

    def dcg(gains):
        return sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains, 1))

    assert value == pytest.approx(dcg(grades) / dcg(ideal), abs=1e-12)


def test_tuning_writes_the_weights_file_that_search_and_compare_take(data, made, tmp_path):
    file, *_ = made["tune"].save_weights(tmp_path / "search-weights.json")

    frame = data.search("q01", file).to_frame()
    compared = data.compare([file], timed=False)

    assert len(frame) == 10
    assert compared.result.rows[0].strategy == str(made["tune"].config.strategy)


def test_lists_are_recorded_and_tuned_from_python(data, tmp_path):
    lists = {
        "words": lambda query: [hit.entry.id for hit in data.search(query, "bm25").hits],
        "meaning": lambda query: [hit.entry.id for hit in data.search(query, "vector").hits],
    }
    data.record(tmp_path / "rec", lists=lists)

    found = data.tune("rrf(words, meaning)", recording=tmp_path / "rec", timed=False)

    assert found.result.row(found.result.provenance.baseline).system == "lists"


def test_a_weights_file_is_a_start_for_tuning_as_what_it_holds_is(data, tmp_path):
    find_system("plain").config(10, data.workspace.model).with_strategy(parse_strategy(STRATEGY)).save(
        tmp_path / "w.json"
    )
    with pytest.raises(ConfigError, match="lists and no"):
        data.tune("http://localhost:1/?q={query}")
    tuned = data.tune(str(tmp_path / "w.json"), weights_only=True, timed=False)
    assert tuned.result.row(tuned.result.provenance.baseline).strategy == str(parse_strategy(STRATEGY))


def test_harmful_text_stays_text_in_every_page():
    texts = ["rotate the keys", "restore the backup", HARM]
    data = sy.load(
        [{"id": f"m{at}", "title": HARM, "text": text} for at, text in enumerate(texts)],
        {"q1": f"keys {HARM}", "q2": "backup"},
        {"q1": ["m0"], "q2": ["m1"]},
        embedder="none",
    )
    pages = [
        data.check()._repr_html_(),
        data.compare({HARM: "bm25"}, timed=False)._repr_html_(),
        data.explain("q1", "bm25")._repr_html_(),
        data.search("q1", "bm25")._repr_html_(),
    ]

    assert not any("<script" in page for page in pages)


def test_chance_begins_at_0_wherever_none_is_asked_for():
    jobs = [getattr(sy.Workbench, name) for name in ("compare", "recommend", "judge")]
    assert [inspect.signature(job).parameters["seed"].default for job in jobs] == [0] * 3


def test_what_was_checked_is_told_by_the_name_of_the_set():
    found = sy.load(
        {"name": "Dataset", "corpus": {"m": "x"}, "queries": {"q": "x"}, "qrels": {"q": ["m"]}}
    ).check()
    assert repr(found).startswith("Checked('Dataset': 1 entry, 1 query")
