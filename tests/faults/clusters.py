"""Kills workers or the scheduler of a Dask cluster that records, and compares the bytes with one process.

    python tests/faults/clusters.py [--minutes 10] [--goal 21] [--fresh] [--only NUMBER]

A piece of work is a cluster of four workers of one thread that records soleri on qrels/workshop; two of them are
killed at random moments. Each 21st piece kills the scheduler instead, and records again with a new cluster. Every
block has to be written once, whoever died, and the recording has to have the bytes of one process. Needs Dask.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

from steelyard.base.errors import MachineError
from steelyard_eval.datasets import load
from steelyard_eval.recording import workers
from steelyard_eval.recording.record import record_systems
from steelyard_eval.recording.workers import scheduled

ROOT = Path(__file__).resolve().parents[2]
SET = Path(os.environ.get("STEELYARD_CLUSTER_SET", ROOT / "qrels" / "workshop"))
SYSTEM = "soleri"
WORKERS, KILLED = 4, 2
PAUSE = 0.2
"""Seconds that a block takes longer than it would, so that a kill meets several at work."""
START = 60.0
"""Seconds that a cluster may take to stand."""


class Noted:
    """An executor whose workers note each block that they write."""

    def __init__(self, executor, notes):
        self.executor, self.notes = executor, notes

    def submit(self, task, block):
        def noted(block, notes=str(self.notes), pause=PAUSE):
            inner = workers.save_block

            def save(part, file):
                time.sleep(pause)
                inner(part, file)
                with Path(notes).open("a") as stream:  # a line of this length is appended whole
                    stream.write(f"{Path(file).name}\n")

            workers.save_block = save
            try:
                return task(block)
            finally:
                workers.save_block = inner

        return self.executor.submit(noted, block)


def record(out, jobs):
    record_systems(load(SET), [SYSTEM], out, "all", 10, "auto", jobs=jobs)
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@cache
def expected():
    with tempfile.TemporaryDirectory() as folder:
        return record(Path(folder), 1)


@contextmanager
def cluster(folder):
    """A scheduler and its workers, as processes of their own; all are dead in the end."""
    file, processes = folder / "scheduler.json", []

    def start(kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(file), *words]
        log = (folder / f"{kind}{len(processes)}.log").open("w")
        processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    try:
        start("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        until = time.monotonic() + START
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        for _ in range(WORKERS):
            start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
        executor = scheduled(json.loads(file.read_text())["address"])
        executor._client.wait_for_workers(WORKERS, timeout=START)
        yield executor, processes
    finally:
        for process in processes:
            with suppress(OSError):
                process.kill()
            process.wait()


def killing(victims, moments):
    """Kill each of the processes at its moment, seconds from now."""
    pairs = zip(victims, moments, strict=True)
    timers = [threading.Timer(at, victim.send_signal, [signal.SIGKILL]) for victim, at in pairs]
    for timer in timers:
        timer.start()
    return timers


def work(number):
    rng = np.random.default_rng(number)
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        os.environ["STEELYARD_CACHE"] = str(folder / "cache")
        notes, out, lost = folder / "notes", folder / "out", 0
        blocks = 16
        with_scheduler = number % 21 == 20
        span = 1.0 + blocks * (PAUSE + 0.3) / WORKERS
        with cluster(folder) as (executor, processes):
            scheduler, *hands = processes
            victims = [scheduler] if with_scheduler else [hands[at] for at in rng.permutation(WORKERS)[:KILLED]]
            timers = killing(victims, rng.uniform(0.2, span, size=len(victims)))
            try:
                made = record(out, Noted(executor, notes))
            except MachineError:
                if not with_scheduler:
                    raise
                lost, made = 1, None
            for timer in timers:
                timer.join()
        if made is None:
            again = folder / "again"
            again.mkdir()
            with cluster(again) as (executor, _):
                made = record(out, Noted(executor, notes))
        written = notes.read_text().split()
        if made != expected():
            raise AssertionError("the bytes are not those of one process")
        if len(set(written)) != len(written):
            raise AssertionError(f"{len(written) - len(set(written))} blocks were written twice")
        if left := list((folder / "cache" / "blocks").iterdir()):
            raise AssertionError(f"{len(left)} folders of blocks are left")
        return {"recordings": 1, "kills": len(victims), "recordings made again": lost, "blocks": len(written)}


if __name__ == "__main__":
    import campaign

    campaign.main("clusters", __doc__, 21, work)
