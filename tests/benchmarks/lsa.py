"""What the power iterations of LSA's SVD cost and bring: nDCG@10 of vector search on five collections.

python tests/benchmarks/lsa.py [--iterations 5,3,2,1] [SET...]
"""

import argparse
import os
import time
from pathlib import Path
from unittest import mock

from steelyard.embedders import lsa
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load

DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
SETS = ("cacm", "cosqa", "cranfield", "locomo", "scifact")


def measured(dataset, iterations):
    """Mean nDCG@10 with its interval, and the processor seconds of the SVD."""
    taken, fit = [], lsa._truncated_svd

    def timed(*given):
        begin = time.process_time()
        made = fit(*given)
        taken.append(time.process_time() - begin)
        return made

    with mock.patch.object(lsa, "ITERATIONS", iterations), mock.patch.object(lsa, "_truncated_svd", timed):
        found = compare(dataset, ["vector"], metrics=["nDCG@10"], embedder="lsa", split="all", timed=False)
    row = next(row for row in found.to_json()["results"] if row["metric"] == "nDCG@10")
    return row, sum(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--iterations", default="5,3,2,1")
    parser.add_argument("sets", nargs="*", default=SETS)
    asked = parser.parse_args()
    for name in asked.sets:
        dataset = load(DATA / name)
        for iterations in map(int, asked.iterations.split(",")):
            row, seconds = measured(dataset, iterations)
            value = f"{row['mean']:.4f} [{row['low']:.4f}, {row['high']:.4f}]"
            size = f"{len(dataset.entries):6,} entries"
            print(f"{name:10} {size}, {iterations} iterations: {value}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
