"""Memory of a streamed recording: run it; the peak follows the block, not the recording.

Peaks are of what Python and numpy allocate (tracemalloc): pages of a mapped file can be dropped at any time. Ids
and judgments stay in memory and are not counted.
"""

import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import synthetic

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.recording.disk import load, save
from steelyard_eval.weights.kernel import streamed_means

CONFIG = find_system("plain").config(10)
STRATEGY = parse_strategy("weighted_sum(0.4*fts, 0.3*bm25, 0.2*vector, 0.1*cosine, normalize=minmax)")
NOTHING_FIXED = {"field_weights": {}, "filters": {}, "similarity": {}, "max_depth": {}, "model": ""}


def write(folder: Path, queries: int) -> dict:
    """A recording of that many queries; its qrels."""
    table, qrels = synthetic.recording(queries, 150, ["fts", "bm25", "vector", "cosine"])
    save(replace(table, fingerprint=NOTHING_FIXED), folder)
    return qrels


def peak(folder: Path, qrels: dict, block: int) -> int:
    """The most bytes held while the means of a weight are taken, block by block, beside ids and judgments."""
    table = load(folder)
    judgments = Judgments.of(qrels, table.queries, table.entries)
    tracemalloc.start()
    weights = [[0.4, 0.3, 0.2, 0.1]]
    streamed_means(table, CONFIG, STRATEGY, weights, judgments, parse_measures(["nDCG@10"]), block=block)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main() -> None:
    print(f"{'queries':>8}{'on disk':>12}{'block':>8}{'peak':>12}")
    for queries in (2_000, 8_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "recording"
            qrels = write(folder, queries)
            size = sum(file.stat().st_size for file in folder.iterdir())
            for block in (100, 100, 1_000):  # the first also loads the compiled loops
                most = peak(folder, qrels, block)
                print(f"{queries:>8}{size / 1e6:>9.1f} MB{block:>8}{most / 1e6:>9.1f} MB")


if __name__ == "__main__":
    main()
