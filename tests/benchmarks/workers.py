"""What more workers gain for a recording: the time of each block, what no worker can share, and what follows.

    python tests/benchmarks/workers.py DATASET [--systems soleri,...] [--clock]

Times are of the processor: of one process that records, and of one that gives out blocks and makes each by itself.
Speed-ups are computed from them by going through what happens: workers begin when the data set is loaded, take
blocks in their order, and share their cores with the process that indexes, waits, joins and writes. What the first
block of a system takes longer than its others is paid by each worker.
`--clock` records with one and with two processes instead, by the clock: for a machine with nothing else to do.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from statistics import median

if "--clock" not in sys.argv:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in a worker; the time of waiting threads would count

from steelyard_eval.common.configurations import separate
from steelyard_eval.datasets import load
from steelyard_eval.recording.record import record_systems

NUMBERS = (1, 2, 4, 8, 16)


class Timed:
    """An executor that makes each block at once; it keeps what that took, and when it was asked and waited for."""

    def __init__(self):
        self.seconds, self.systems, self.steps = [], [], []
        self.begin, self.made = time.process_time(), 0.0

    def note(self, kind, block):
        """Own seconds until now, without those of blocks; what follows them; which block."""
        self.steps.append((time.process_time() - self.begin - self.made, kind, block))

    def submit(self, task, block):
        number, executor = len(self.seconds), self
        self.note("submit", number)
        begin, file = time.process_time(), task(block)
        self.seconds.append(time.process_time() - begin)
        self.systems.append(block.work.key)
        self.made += self.seconds[-1]

        class Waited(Future):
            def result(self, timeout=None):
                executor.note("wait", number)
                return super().result(timeout)

        future = Waited()
        future.set_result(file)
        return future


def together(executor, begin, start, workers):
    """Seconds until all is recorded, by `workers` processes on as many cores and the one that they work for."""
    first, others = {}, {}
    for system, taken in zip(executor.systems, executor.seconds, strict=True):
        first[system] = first.get(system, taken)
        others.setdefault(system, []).append(taken)
    usual = {system: median(own[1:] or own) for system, own in others.items()}
    cold = {system: max(0.0, first[system] - usual[system]) for system in first}
    steps, done, queue, clock, spent = list(executor.steps), set(), [], begin, 0.0
    hands = [{"left": start, "block": None, "known": set()} for _ in range(workers)]
    own = steps[0][0]  # seconds until the next step of the process that records
    while steps:
        while steps and own <= 1e-9:
            spent, kind, block = steps[0]
            if kind == "wait" and block not in done:
                break
            if kind == "submit":
                queue.append(block)
            steps.pop(0)
            own = steps[0][0] - spent if steps else 0.0
        for hand in hands:
            if hand["left"] <= 1e-9 and queue:
                block = hand["block"] = queue.pop(0)
                system = executor.systems[block]
                taken = executor.seconds[block] - (
                    cold[system] if block == executor.systems.index(system) else 0.0
                )
                hand["left"] = taken + (0.0 if system in hand["known"] else cold[system])
                hand["known"].add(system)
        busy = [hand for hand in hands if hand["left"] > 1e-9]
        running = len(busy) + (own > 1e-9)
        if not running:
            break
        speed = min(1.0, workers / running)
        passed = min([hand["left"] for hand in busy] + ([own] if own > 1e-9 else [])) / speed
        clock, own = clock + passed, max(0.0, own - passed * speed)
        for hand in busy:
            hand["left"] -= passed * speed
            if hand["left"] <= 1e-9:
                done.add(hand["block"])
    return clock


def starting():
    """Seconds of the processor until a new process can search: imports."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import steelyard_eval.recording.workers"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(data, systems, jobs):
    with tempfile.TemporaryDirectory() as folder:
        record_systems(data, systems, Path(folder), "all", 10, "auto", jobs=jobs)


def clocked(path, systems, jobs):
    begin = time.perf_counter()
    recorded(load(path), systems, jobs)
    return time.perf_counter() - begin


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--systems", default="fts,bm25,vector,echovault,soleri,moltnet")
    parser.add_argument("--clock", action="store_true")
    args = parser.parse_args(arguments)
    systems = separate(args.systems)
    if args.clock:
        one, two = (clocked(args.dataset, systems, jobs) for jobs in (1, 2))
        print(f"by the clock: {one:.1f} s by one process, {two:.1f} s by two, {one / two:.2f} times as fast")
        return
    start, begin = starting(), time.process_time()
    data = load(args.dataset)
    loading = time.process_time() - begin
    recorded(data, systems, 1)
    one = time.process_time() - begin
    executor = Timed()
    recorded(data, systems, executor)
    executor.note("end", None)
    shared, rest = sum(executor.seconds), executor.steps[-1][0] + loading
    print(f"{Path(args.dataset).name}, {len(systems)} systems, processor seconds: one process {one:.1f}")
    longest = max(executor.seconds)
    print(f"  {len(executor.seconds)} blocks {shared:.1f}, the longest {longest:.2f}; the rest {rest:.1f}")
    print(f"  a worker begins in {start:.2f}; no worker can share {rest / (rest + shared):.0%}")
    for workers in NUMBERS:
        seconds = one if workers == 1 else together(executor, loading, start, workers)
        print(f"  {workers:3} workers: {seconds:5.1f} s, {one / seconds:.2f} times as fast")


if __name__ == "__main__":
    sys.exit(main())
