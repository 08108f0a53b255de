"""What `make browser` explores: a made-up data set, and a recording of its queries."""

import json
from dataclasses import replace

from synthetic import recording

import steelyard_eval as sy
from steelyard_eval.common.configurations import Setting
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.disk import save
from steelyard_eval.recording.record import record


def write(folder, queries, candidates):
    table, qrels = recording(queries, candidates, ("bm25", "vector"))
    data, lists = folder / "data", folder / "recording"
    data.mkdir(parents=True)
    entries = [{"id": id_, "title": f"entry {id_}", "text": "words " * 20} for id_ in table.entries]
    asked = [{"id": id_, "text": f"question {id_}", "category": f"kind {at % 5}"} for at, id_ in enumerate(qrels)]
    for name, rows in (("corpus", entries), ("queries", asked)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = (f"{query} 0 {id_} {grade}\n" for query, own in qrels.items() for id_, grade in own.items())
    (data / "qrels.txt").write_text("".join(lines))
    (data / "dataset.json").write_text('{"name": "made-up", "as_of": "2026-11-15T00:00:00Z"}')
    demo = sy.load(starter())
    known = record(demo.workspace, demo.dataset.queries[:1], [Setting(10, "minilm").strategy("rrf(bm25, vector)")])
    own = {"corpus": load(data).sha256, "max_depth": {"bm25": candidates, "vector": candidates}}
    save(replace(table, fingerprint={**known.fingerprint, **own}), lists)
    return data, lists
