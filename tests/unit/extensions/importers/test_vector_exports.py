"""What vector databases export, in the documented forms: fields one level down, a column of vectors."""

import json

import numpy as np
import pytest

from steelyard.systems import find_system
from steelyard_eval.datasets import check, load
from steelyard_eval.extensions.importers import Options, import_store
from steelyard_eval.recording.workspace import Workspace

POINTS = [
    {"id": 7, "payload": {"text": "The pump is loud.", "title": "Pump", "tags": ["hall"]}, "vector": [0.5, 0.25]},
    {"id": 8, "payload": {"text": "The fan is slow."}, "vector": [0.75, 0.5]},
]
READ = {"7": ("The pump is loud.", [0.5, 0.25]), "8": ("The fan is slow.", [0.75, 0.5])}
TEXTS = [text for text, _ in READ.values()]
VECTORS = [vector for _, vector in READ.values()]
PINECONE = {
    str(point["id"]): {
        "id": str(point["id"]),
        "values": point["vector"],
        "metadata": {"text": point["payload"]["text"]},
    }
    for point in POINTS
}
WEAVIATE = [
    {"class": "Note", "id": id_, "creationTimeUnix": 1772323200000, "properties": {"body": text}, "vector": vector}
    for id_, (text, vector) in READ.items()
]
FORMS = {
    "points.json": {"result": {"points": POINTS, "next_page_offset": None}, "status": "ok", "time": 0.1},
    "points.jsonl": POINTS,
    "named.jsonl": [{**point, "vector": {"": point["vector"], "image": [1, 2, 3]}} for point in POINTS],
    "only.jsonl": [{**point, "vector": {"body": point["vector"]}} for point in POINTS],
    "fetch.json": {"vectors": PINECONE, "namespace": ""},
    "query.json": {"matches": list(PINECONE.values())},
    "get.json": {
        "ids": ["7", "8"],
        "documents": TEXTS,
        "metadatas": [{"page": 1}, None],
        "embeddings": VECTORS,
        "uris": None,
        "included": ["documents"],
    },
    "objects.json": {"objects": WEAVIATE},
    "graphql.json": {
        "data": {
            "Get": {
                "Note": [
                    {"content": text, "_additional": {"id": id_, "vector": vector}}
                    for id_, (text, vector) in READ.items()
                ]
            }
        }
    },
    "search.json": {
        "took": 3,
        "hits": {
            "total": {"value": 2},
            "hits": [
                {"_id": id_, "_score": 1, "_source": {"message": text, "embedding": vector}}
                for id_, (text, vector) in READ.items()
            ],
        },
    },
    "table.csv": 'id,content,embedding\n7,The pump is loud.,"[0.5, 0.25]"\n8,The fan is slow.,[0.75 0.5]\n',
}


def imported(tmp_path, name, content, **columns):
    lines = name.endswith(".jsonl") and not isinstance(content, str)
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / name).write_text("\n".join(map(json.dumps, content)) if lines else text)
    done = import_store(tmp_path / name, tmp_path / "mine", "table", Options(columns=columns))
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
