"""Benchmarks, exports of vector databases and MCP memory files, in small samples after the real ones."""

import hashlib
import json
import sys
import types
from collections import namedtuple

import numpy as np
import pytest
from shared import beside, tabled
from tests.contracts.importer_contract import ImporterContract

from steelyard.base.errors import DataError
from steelyard.systems import find_system
from steelyard_eval.datasets import check, load
from steelyard_eval.extensions.importers import import_store, importers, load_store
from steelyard_eval.recording.workspace import Workspace

SAMPLES = beside(__file__, "samples.json")
LOCOMO, QUESTION, TREC = (SAMPLES[name] for name in ("locomo", "question of longmemeval", "trec"))
CORPUS, BEIR, MTEB = (SAMPLES[name] for name in ("corpus", "beir", "mteb"))
LONGMEMEVAL = [QUESTION, {**QUESTION, "question_id": "q2_abs"}]
POINTS, FORMS = SAMPLES["points"], SAMPLES["forms of points"]


def written(folder, files):
    """The folder with these files by name: texts, or values that are written as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.fixture
def published(tmp_path):
    """The folder of the test, and what is loaded of one of its files."""
    return lambda name, content: load_store(written(tmp_path, {name: content}) / name)


def test_locomo_by_turns(published):
    data = published("locomo10.json", LOCOMO)
    first, second, third = data.entries
    assert (second.id, second.text, second.title) == ("conv-1:D1:2", "Look.\n[shares a picture: a lake]", "Bo")
    assert first.created_at == 1683554160  # date -u -d '2023-05-08 13:56' +%s
    assert third.project == "conv-1"
    assert data.qrels == {"conv-1:q000": {"conv-1:D1:2": 1, "conv-1:D2:1": 1}, "conv-1:q001": {"conv-1:D1:1": 1}}
    when, who, _ = data.queries
    assert (when.category, when.group, when.answerable, who.answerable) == ("temporal", "conv-1", True, False)
    assert when.asked_at == 1685613600  # the last session: date -u -d '2023-06-01 10:00' +%s
    assert any(note.startswith("1 piece of") for note in data.notices)


def test_longmemeval(published):
    data = published("longmemeval_s.json", LONGMEMEVAL)
    assert data.qrels["q1"] == {"q1:s2:0": 1}
    assert [query.answerable for query in data.queries] == [True, False]
    assert data.entries[0].created_at == 1684549260  # date -u -d '2023-05-20 02:21' +%s
    assert len(data.entries) == 6


def test_what_published_files_lack_is_no_fault(published):
    """Turns without a content or a mark, answers that are numbers; a session that has a date and no turns."""
    turns = [{"role": "user", "content": None}, {"role": "user", "content": "Soup at two."}]
    odd = {**QUESTION, "answer": 2, "question_date": "2023-05-30", "haystack_sessions": [turns, turns[1:]]}
    asked = published("longmemeval_s.json", [odd])
    assert [entry.text for entry in asked.entries if entry.text] == ["Soup at two.", "Soup at two."]
    assert asked.queries[0].asked_at == 1685404800  # date -u -d 2023-05-30 +%s
    notices = published("longmemeval_s.json", [{**odd, "question_date": "noon"}]).notices
    told = [note for note in notices if "read without" in note]
    assert [note.split(",")[0].split()[-1] for note in told] == ["asked_at"]
    bare = {**LOCOMO[0], "conversation": {**LOCOMO[0]["conversation"], "session_3_date_time": "noon"}}
    assert len(published("locomo10.json", [bare]).entries) == 3


@pytest.mark.parametrize("form", ["beir", "mteb"])
def test_beir_and_mteb(tmp_path, form):
    written(tmp_path, CORPUS | (BEIR if form == "beir" else MTEB))
    data = load_store(tmp_path, "beir")
    assert data.qrels == {"q1": {"d%201": 2}, "q2": {"d2": 1}}
    assert [query.split for query in data.queries] == ["test", "train"]


def test_trec(tmp_path):
    written(tmp_path, TREC)
    import_store(tmp_path, tmp_path / "out" / "mine")
    data = load_store(tmp_path)
    found = [(entry.id, entry.title, entry.text) for entry in data.entries]
    assert found == [("A-1", "Keys", "Keys Rotate & log."), ("A-2", "", "Sleep & < 5 min")]
    assert [(query.id, query.text) for query in data.queries] == [("301", "key rotation")]
    assert data.qrels == {"301": {"A-1": 1, "A-2": 0}}
    run = (tmp_path / "out" / "mine" / "runs" / "prod.run").read_text()
    assert run == "301 Q0 A-2 1 9.5 prod\n301 Q0 A-1 2 3.0 prod\n"


PUBLISHED = {
    "locomo": ({"locomo10.json": LOCOMO}, "locomo10.json"),
    "longmemeval": ({"longmemeval_s.json": LONGMEMEVAL}, "longmemeval_s.json"),
    "beir": (CORPUS | BEIR, ""),
    "trec": (TREC, ""),
}


@pytest.mark.parametrize("kind", PUBLISHED)
class TestBenchmarks(ImporterContract):
    @pytest.fixture
    def importer(self, kind):
        return importers()[kind]

    @pytest.fixture
    def store(self, kind, tmp_path):
        files, name = PUBLISHED[kind]
        return written(tmp_path / "published", files) / name


def test_ids_of_ir_datasets(monkeypatch):
    """A stand-in with the calls of ir_datasets that are documented: docs_iter, queries_iter, qrels_iter."""
    doc = namedtuple("doc", "doc_id title text")
    query, qrel = namedtuple("query", "query_id text"), namedtuple("qrel", "query_id doc_id relevance")
    query.default_text = lambda self: self.text
    held = {"docs": doc("d1", "T", "one"), "queries": query("q1", "first"), "qrels": qrel("q1", "d1", 1)}
    calls = {f"{name}_iter": lambda row=row: iter([row]) for name, row in held.items()}
    small = types.SimpleNamespace(**calls, has_qrels=lambda: True)
    monkeypatch.setitem(sys.modules, "ir_datasets", types.SimpleNamespace(load={"small": small}.__getitem__))
    monkeypatch.setattr("steelyard_eval.extensions.importers.benchmark.require", lambda *_: None)
    data = load_store("irds:small")
    assert data.qrels == {"q1": {"d1": 1}}
    assert data.entries[0].title == "T"


READ = {str(point["id"]): (point["payload"]["text"], point["vector"]) for point in POINTS}
VECTORS = [vector for _, vector in READ.values()]


def imported(tmp_path, name, content):
    if name.endswith(".jsonl") and not isinstance(content, str):
        content = "\n".join(map(json.dumps, content))
    done = import_store(written(tmp_path, {name: content}) / name, tmp_path / "mine", "table")
    assert check(tmp_path / "mine").faults == ()
    return done, load(tmp_path / "mine")


@pytest.mark.parametrize("name", FORMS)
def test_texts_and_vectors_are_read(tmp_path, name):
    done, data = imported(tmp_path, name, FORMS[name])
    matrix = data.vectors[done.models[0], "text"]
    found = {entry.id: (entry.text, row.tolist()) for entry, row in zip(data.entries, matrix, strict=True)}
    assert found == READ
    assert "vector" not in data.entries[0].extra


@pytest.mark.parametrize("vector", [None, [0, 0], [1], ["a", "b"], [1e39, 1]])
def test_an_entry_without_a_vector_costs_only_its_own(tmp_path, vector):
    rows = [*POINTS, {"id": 9, "payload": {"text": "The tap drips."}, "vector": vector}]
    done, data = imported(tmp_path, "points.jsonl", rows)
    assert np.array_equal(data.vectors[done.models[0], "text"], [*VECTORS, [0, 0]])
    assert any("no usable vector" in note for note in done.notes)
    np.save(tmp_path / "mine" / f"queries.{done.models[0]}.f16.npy", np.float16([[1, 0.5]]))
    (tmp_path / "mine" / "queries.jsonl").write_text('{"id": "q", "text": "noise"}\n')
    (tmp_path / "mine" / "qrels.txt").write_text("q 0 7 1\n")
    hits = Workspace.open(load(tmp_path / "mine"), "recorded")
    hits.index_for([find_system("vector")], ["vector"])
    found = hits.searcher(find_system("vector").config(10)).search("noise")
    assert {hit.entry.id for hit in found.hits} == {"7", "8"}


def test_a_column_of_words_called_values_stays(tmp_path):
    _, data = imported(tmp_path, "a.jsonl", [{"id": "1", "text": "Choose one.", "values": ["red", "deep green"]}])
    assert data.entries[0].extra["values"] == ["red", "deep green"]
    assert data.entries[0].context == "values: deep green"


KILN = '{"type":"entity","name":"Kiln 2","entityType":"oven","observations":["Fires at noon"]}'
BO = '{"type":"entity","name":"Bo","entityType":"potter","observations":["Prefers ash glaze"]}'
MCP_READ = {"Kiln%202": "Fires at noon", "Bo": "Prefers ash glaze"}
LATER = '{"type":"entity","name":"Bo","entityType":"potter","observations":["Prefers ash glaze","Moved away"]}'


def loaded(tmp_path, text, name="memory.jsonl"):
    data = load_store(written(tmp_path, {name: text}) / name)
    return {entry.id: entry for entry in data.entries}, data.notices


@tabled
@pytest.mark.parametrize("name", ["memory.jsonl", "memory.json"])
def test_what_can_be_read_is_read_and_the_rest_counted(tmp_path, text, lines, name):
    entries, notices = loaded(tmp_path, text, name)
    assert {id_: entry.text for id_, entry in entries.items()} == MCP_READ
    assert [(r.type, r.target) for r in entries["Bo"].relations] == [("tends", "Kiln%202")]
    told = [note for note in notices if "no entity and" in note]
    assert [note.rpartition("line ")[2] for note in told] == ([lines] if lines else [])


def test_a_line_that_is_nested_too_deep_is_left_out(tmp_path):
    deep = '{"type":"entity","name":"x","observations":[' * 3000
    entries, notices = loaded(tmp_path, f"{KILN}\n{BO}\n{deep}")
    assert {id_: entry.text for id_, entry in entries.items()} == MCP_READ
    assert [note.rpartition("line ")[2] for note in notices if "no entity and" in note] == ["3"]


@tabled
def test_observations_of_other_forms(tmp_path, observations, text, counted):
    line = KILN.replace('["Fires at noon"]', observations)
    entries, notices = loaded(tmp_path, f"{line}\n{BO}")
    assert entries["Kiln%202"].text == text
    assert len([note for note in notices if "no entity and" in note]) == counted


def test_an_entity_that_is_there_twice_is_merged_and_names_of_other_case_are_two(tmp_path):
    other = BO.replace('"Bo"', '"bo"')
    entries, notices = loaded(tmp_path, f"{BO}\n{KILN}\n{LATER}\n{other}")
    assert list(entries) == ["Bo", "Kiln%202", "bo"]
    assert entries["Bo"].text == "Prefers ash glaze\nMoved away"
    assert len([note for note in notices if note.startswith("1 entity")]) == 1


def test_a_file_without_anything_is_refused(tmp_path):
    with pytest.raises(DataError, match="neither entities"):
        loaded(tmp_path, '{"type":"entity","observations":["na\n')


def test_a_row_without_an_id_keeps_the_id_it_had(tmp_path):
    """The first 16 digits of the SHA-256 of the row as sorted JSON, by sha256sum."""
    row = {"text": "The tap drips.", "answer": "Turn it off.", "vector": [1, 2]}
    _, data = imported(tmp_path, "a.jsonl", [row])
    assert data.entries[0].id == hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]
