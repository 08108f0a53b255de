"""What more workers gain for a recording: the time of each block, what no worker can share, and what follows.

    python tests/benchmarks/workers.py DATASET [--systems soleri,...] [--clock]

Times are of the processor, in one process that makes every block by itself. Speed-ups are computed from them:
blocks go to whoever is free first, in their order, and each worker begins by importing and opening the vault.
`--clock` also records with one and with two processes, by the clock: for a machine with nothing else to do.
"""

import argparse
import heapq
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path

from steelyard_eval.cli.commands.options import listed
from steelyard_eval.datasets import load
from steelyard_eval.recording.record import record_systems

NUMBERS = (1, 2, 4, 8, 16)
START = 1.3
"""Seconds of the processor until a new process can search: imports, measured by `-X importtime`."""


class Timed:
    """An executor that makes each block at once, and keeps what it took."""

    def __init__(self):
        self.seconds = []

    def submit(self, task, block):
        future, begin = Future(), time.process_time()
        future.set_result(task(block))
        self.seconds.append(time.process_time() - begin)
        return future


def makespan(seconds, workers):
    """When the last block is done, if blocks go in their order to whoever is free first."""
    free = [START if workers > 1 else 0.0] * workers
    for taken in seconds:
        heapq.heappush(free, heapq.heappop(free) + taken)
    return max(free)


def clocked(data, systems, jobs):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        record_systems(load(data), systems, Path(folder), "all", 10, "auto", jobs=jobs)
        return time.perf_counter() - begin


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--systems", default="fts,bm25,vector,echovault,soleri,moltnet")
    parser.add_argument("--clock", action="store_true")
    args = parser.parse_args(arguments)
    executor, systems, begin = Timed(), listed(args.systems), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        record_systems(load(args.dataset), systems, Path(folder), "all", 10, "auto", jobs=executor)
    whole, shared = time.process_time() - begin, sum(executor.seconds)
    rest = whole - shared
    print(f"{Path(args.dataset).name}, {len(systems)} systems, processor seconds")
    longest = max(executor.seconds)
    print(f"  {len(executor.seconds)} blocks {shared:.1f}, the longest {longest:.2f}; the rest {rest:.1f}")
    print(f"  no worker can share {rest / whole:.0%}")
    for workers in NUMBERS:
        seconds = rest + makespan(executor.seconds, workers)
        print(f"  {workers:3} workers: {seconds:5.1f} s, {whole / seconds:.2f} times as fast")
    if args.clock:
        one, two = (clocked(args.dataset, systems, jobs) for jobs in (1, 2))
        print(f"  by the clock: {one:.1f} s by one process, {two:.1f} s by two, {one / two:.2f} times as fast")


if __name__ == "__main__":
    sys.exit(main())
