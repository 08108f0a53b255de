"""Benchmarks in their published forms, in small samples written by hand after the real files."""

import json
import sys
import types
from collections import namedtuple

import pytest
from tests.contracts.importer_contract import ImporterContract

from steelyard_eval.extensions.importers import import_store, importers, load_store

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "Hey!"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Look.", "blip_caption": "a lake"},
            ],
            "session_2_date_time": "10:00 am on 1 June, 2023",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "I painted it last year."}],
        },
        "qa": [
            {"question": "When?", "answer": 2022, "evidence": ["D1:2; D2:01"], "category": 2},
            {"question": "Who?", "evidence": ["D1:1"], "category": 5, "adversarial_answer": "Bo"},
            {"question": "Where?", "answer": "x", "evidence": ["D9:9"], "category": 1},
        ],
    }
]


def written(folder, files):
    """The folder with these files by name: texts, or values that are written as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.fixture
def locomo(tmp_path):
    return written(tmp_path, {"locomo10.json": LOCOMO}) / "locomo10.json"


def test_locomo_by_turns(locomo):
    data = load_store(locomo)
    first, second, third = data.entries
    assert (second.id, second.text, second.title) == ("conv-1:D1:2", "Look.\n[shares a picture: a lake]", "Bo")
    assert first.created_at == 1683554160  # date -u -d '2023-05-08 13:56' +%s
    assert third.project == "conv-1"
    assert data.qrels == {"conv-1:q000": {"conv-1:D1:2": 1, "conv-1:D2:1": 1}, "conv-1:q001": {"conv-1:D1:1": 1}}
    when, who, _ = data.queries
    assert (when.category, when.group, when.answerable, who.answerable) == ("temporal", "conv-1", True, False)
    assert when.asked_at == 1685613600  # the last session: date -u -d '2023-06-01 10:00' +%s
    assert any(note.startswith("1 piece of") for note in data.notices)


QUESTION = {
    "question_id": "q1",
    "question_type": "knowledge-update",
    "question": "Where do I live?",
    "answer": "Oslo",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        [{"role": "user", "content": "I moved to Oslo.", "has_answer": True}],
    ],
    "answer_session_ids": ["s2"],
}
LONGMEMEVAL = [QUESTION, {**QUESTION, "question_id": "q2_abs"}]


def test_longmemeval(tmp_path):
    written(tmp_path, {"longmemeval_s.json": LONGMEMEVAL})
    data = load_store(tmp_path / "longmemeval_s.json")
    assert data.qrels["q1"] == {"q1:s2:0": 1}
    assert [query.answerable for query in data.queries] == [True, False]
    assert data.entries[0].created_at == 1684549260  # date -u -d '2023-05-20 02:21' +%s
    assert len(data.entries) == 6


def test_what_published_files_lack_is_no_fault(tmp_path):
    """Turns without a content or a mark, answers that are numbers; a session that has a date and no turns."""
    turns = [{"role": "user", "content": None}, {"role": "user", "content": "Soup at two."}]
    odd = {**QUESTION, "answer": 2, "question_date": "2023-05-30", "haystack_sessions": [turns, turns[1:]]}
    bare = {**LOCOMO[0], "conversation": {**LOCOMO[0]["conversation"], "session_3_date_time": "noon"}}
    written(tmp_path, {"longmemeval_s.json": [odd], "locomo10.json": [bare]})
    asked = load_store(tmp_path / "longmemeval_s.json")
    assert [entry.text for entry in asked.entries if entry.text] == ["Soup at two.", "Soup at two."]
    assert asked.queries[0].asked_at == 1685404800  # date -u -d 2023-05-30 +%s
    assert len(load_store(tmp_path / "locomo10.json").entries) == 3


def test_dates_of_questions_that_are_none_are_counted(tmp_path):
    odd = {**QUESTION, "question_date": "noon", "haystack_dates": ["2023-05-20", "noon"]}
    data = load_store(written(tmp_path, {"longmemeval_s.json": [odd]}) / "longmemeval_s.json")
    assert [entry.created_at for entry in data.entries] == [
        1684540800,
        1684540800,
        None,
    ]  # date -u -d 2023-05-20 +%s
    told = [note for note in data.notices if "read without" in note]
    assert sorted((note.split()[1], note.split(",")[0].split()[-1]) for note in told) == [
        ("entry", "created_at"),
        ("query", "asked_at"),
    ]


CORPUS = {
    "corpus.jsonl": '{"_id": "d 1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "second"}\n',
}
BEIR = {
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td 1\t2\n",
    "qrels/train.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\nq2\td2\t1\n",
}
MTEB = {
    "qrels/test.jsonl": '{"query-id": "q1", "corpus-id": "d 1", "score": 2.0}\n',
    "qrels/train.jsonl": '{"query-id": "q2", "corpus-id": "d2", "score": 1}\n',
}


@pytest.mark.parametrize("form", ["beir", "mteb"])
def test_beir_and_mteb(tmp_path, form):
    written(tmp_path, CORPUS | (BEIR if form == "beir" else MTEB))
    data = load_store(tmp_path, "beir")
    assert data.qrels == {"q1": {"d%201": 2}, "q2": {"d2": 1}}
    assert [query.split for query in data.queries] == ["test", "train"]


TREC = {
    "docs.trec": "<DOC>\n<DOCNO> A-1 </DOCNO>\n<TITLE>Keys</TITLE>\n<TEXT>Rotate &amp; log.</TEXT>\n</DOC>\n"
    "<DOC><DOCNO>A-2</DOCNO><TEXT>Sleep & < 5 min</TEXT></DOC>\n",
    "topics.txt": "<top>\n<num> Number: 301\n<title> key rotation\n<desc> Description:\nHow?\n</top>\n",
    "qrels.txt": "301 0 A-1 1\n301 0 A-2 -2\n",
    "prod.run": "301 Q0 A-2 1 9.5 prod\n301 Q0 A-1 2 3\n",
}


def test_trec(tmp_path):
    written(tmp_path, TREC)
    import_store(tmp_path, tmp_path / "out" / "mine")
    data = load_store(tmp_path)
    assert [(entry.id, entry.title, entry.text) for entry in data.entries] == [
        ("A-1", "Keys", "Keys Rotate & log."),
        ("A-2", "", "Sleep & < 5 min"),
    ]
    assert [(query.id, query.text) for query in data.queries] == [("301", "key rotation")]
    assert data.qrels == {"301": {"A-1": 1, "A-2": 0}}
    run = (tmp_path / "out" / "mine" / "runs" / "prod.run").read_text()
    assert run == "301 Q0 A-2 1 9.5 prod\n301 Q0 A-1 2 3.0 prod\n"


SAMPLES = {
    "locomo": ({"locomo10.json": LOCOMO}, "locomo10.json"),
    "longmemeval": ({"longmemeval_s.json": LONGMEMEVAL}, "longmemeval_s.json"),
    "beir": (CORPUS | BEIR, ""),
    "trec": (TREC, ""),
}


@pytest.mark.parametrize("kind", SAMPLES)
class TestBenchmarks(ImporterContract):
    @pytest.fixture
    def importer(self, kind):
        return importers()[kind]

    @pytest.fixture
    def store(self, kind, tmp_path):
        files, name = SAMPLES[kind]
        return written(tmp_path / "published", files) / name


def test_ids_of_ir_datasets(monkeypatch):
    """A stand-in with the calls of ir_datasets that are documented: docs_iter, queries_iter, qrels_iter."""
    doc = namedtuple("doc", "doc_id title text")
    query, qrel = namedtuple("query", "query_id text"), namedtuple("qrel", "query_id doc_id relevance")
    query.default_text = lambda self: self.text

    class Small:
        docs_iter = staticmethod(lambda: iter([doc("d1", "T", "one")]))
        queries_iter = staticmethod(lambda: iter([query("q1", "first")]))
        qrels_iter = staticmethod(lambda: iter([qrel("q1", "d1", 1)]))
        has_qrels = staticmethod(lambda: True)

    module = types.ModuleType("ir_datasets")
    module.load = {"small": Small()}.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    monkeypatch.setattr("steelyard_eval.extensions.importers.benchmark.require", lambda *_: None)
    data = load_store("irds:small")
    assert data.qrels == {"q1": {"d1": 1}}
    assert data.entries[0].title == "T"
