"""What re-ranking 20 places adds to a search: ``python tests/benchmarks/reranking.py``.

Three re-rankers that know nothing, so that only the way to them is timed: a function (the wiring), an endpoint on
this machine that answers at once (Voyage's form, over HTTP), and a cross-encoder of the shape of
ms-marco-MiniLM-L-6-v2 with random weights (needs torch, sentence-transformers). Every query of qrels/starter once,
after one that is not timed; caches are off, one thread. The first row is the same search without re-ranking. Other
programs disturb processor time less than the clock; here it includes that of the endpoint.
"""

import json
import logging
import sys
import tempfile
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from steelyard.extensions.rerank.api import ApiReranker
from steelyard.extensions.rerank.local import LocalReranker
from steelyard.finish import Rerank
from steelyard.live.search import Searcher
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"


class Wiring:
    """Scores by place."""

    name = "wiring"

    def score(self, query, documents):
        return np.arange(len(documents), dtype=np.float64)


class Handler(BaseHTTPRequestHandler):
    """An endpoint that answers as Voyage does, with scores by place."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        scores = [{"index": at, "relevance_score": at / 100} for at in range(len(asked["documents"]))]
        sent = json.dumps({"data": scores}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args):
        pass


def over_http():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    return ApiReranker.of("voyage", {"VOYAGE_API_KEY": "none", "VOYAGE_BASE_URL": address})


def local(folder, words):
    """Six layers of 384 numbers, as ms-marco-MiniLM-L-6-v2, with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    every = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
    (folder / "vocab.txt").write_text("\n".join(every))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = BertConfig(
        vocab_size=len(every),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=1,
    )
    BertForSequenceClassification(shape).save_pretrained(folder)
    return LocalReranker(str(folder))


def taken(searcher, queries):
    """Milliseconds of each search by the clock and of the processor, after one that is not timed."""
    searcher.search(queries[0])
    found = []
    for query in queries:
        begin, worked = time.perf_counter(), time.process_time()
        result = searcher.search(query)
        found.append((time.perf_counter() - begin, time.process_time() - worked))
        if result.degraded:
            raise SystemExit(f"the re-ranker failed: {result.notes}")
    return np.array(found) * 1000


def main():
    logging.disable(logging.WARNING)
    space = Workspace.open(load(STARTER))
    queries = space.dataset.queries
    plain = find_system("spec_kit").config(10, space.model)
    space.index_for([find_system("spec_kit")], ["vector", "bm25", "fts"])
    again = replace(plain, finish=(Rerank(20, "length"), *plain.finish))
    words = {word for entry in space.dataset.entries for word in f"{entry.title} {entry.text}".lower().split()}
    with tempfile.TemporaryDirectory() as folder:
        rows = [("none", plain, None), ("wiring", again, Wiring()), ("http, this machine", again, over_http())]
        try:
            rows.append(("local, 6 layers", again, local(Path(folder), words)))
        except ImportError as error:
            print(f"left out: local ({error})", file=sys.stderr)
        print(f"{'re-ranker':<20} {'p50 ms':>8} {'p95 ms':>8} {'processor p50':>14} {'p95':>8}")
        for name, config, reranker in rows:
            searcher = Searcher(
                space.store, config, space.embedder, clock=lambda: space.dataset.as_of, reranker=reranker
            )
            times = taken(searcher, queries)
            (p50, cpu50), (p95, cpu95) = np.percentile(times, (50, 95), axis=0)
            print(f"{name:<20} {p50:>8.2f} {p95:>8.2f} {cpu50:>14.2f} {cpu95:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
