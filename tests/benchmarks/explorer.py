"""How long the explorer takes, in Python, from a moved weight to all it shows: 2,000 queries x 200 candidates.

The way through a browser and back is measured by `make browser`, on the same recording.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from synthetic import recording

import steelyard_eval as sy
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import starter
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.notebook.explorer.bench import Bench
from steelyard_eval.notebook.explorer.exploration import Exploration
from steelyard_eval.recording.disk import save
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import open_recording

STRATEGY = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"
MOVES = 100


def write(folder: Path, queries: int, candidates: int) -> tuple[Path, Path]:
    """A data set of made-up entries and a recording of its queries; their folders."""
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


def times(act, inputs) -> dict[str, float]:
    """Median and p95 in milliseconds, after one call that compiles."""
    act(*inputs[0])
    taken = []
    for one in inputs:
        begin = time.perf_counter()
        act(*one)
        taken.append(1000 * (time.perf_counter() - begin))
    return {"median_ms": round(float(np.median(taken)), 1), "p95_ms": round(float(np.percentile(taken, 95)), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--candidates", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, lists = write(Path(folder), options.queries, options.candidates)
        dataset = load(data)
        table = open_recording(lists, dataset)
        bench = Bench.of(dataset, parse_measures(["nDCG@10"])[0], 10, None, table)
        explored = Exploration(bench, read_config(STRATEGY), "bm25")
        steps = [(0, at / MOVES) for at in range(MOVES)]
        rows = {
            "a weight, to everything shown": times(explored.weigh, steps),
            "the curves of all weights": times(lambda: [explored.curve(0), explored.curve(1)], [()] * 10),
            "another normalisation": times(explored.choose, [(0, at % 5) for at in range(10)]),
            "the list of another query": times(explored.look, [(at,) for at in range(50)]),
        }
    for name, row in rows.items():
        print(f"{name:32} median {row['median_ms']:7.1f} ms   p95 {row['p95_ms']:7.1f} ms")


if __name__ == "__main__":
    main()
