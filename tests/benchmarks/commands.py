"""What people wait for: `make bench`, or python tests/benchmarks/commands.py; --large adds 100,000 entries.

Each command runs RUNS times, in a process of its own, after a loop that is always the same: the ratio to it lets
figures of two days compare. --write makes docs/benchmarks.md.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import synthetic

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
RUNS, QUERIES = 3, 60
SIZES, LARGE = (500, 5_000), 100_000
LOOP = ("-c", "sum(number * number % 7 for number in range(5_000_000))")
JOBS = {
    "index": "index mine mine.db",
    "the first search": "search mine.db mine",
    "search": "search mine.db mine",
    "compare bm25 and vector": "compare mine bm25 vector",
    "recommend, recorded vectors": "recommend mine",
    "recommend, LSA": "recommend mine --embedder lsa",
    "write a baseline": "gate mine bm25 vector --baseline base.json --update --reason new",
    "gate": "gate mine --baseline base.json",
}


def notes(folder, count):
    """Write synthetic entries with vectors, and queries of five words of one of them, which is their label."""
    folder.mkdir()
    made = [
        {"id": e.id, "title": e.title, "text": e.text, "tags": e.tags} for e in synthetic.memory(count).entries
    ]
    asked = range(0, count, count // QUERIES)[:QUERIES]
    queries = [{"id": f"q{at}", "text": " ".join(made[at]["text"].split()[1:30:6])} for at in asked]
    vectors = synthetic.vectors(count, 384)
    for name, records, rows in (("corpus", made, vectors), ("queries", queries, vectors[list(asked)])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
        np.save(folder / f"{name}.minilm.f16.npy", rows.astype(np.float16))
    (folder / "qrels.txt").write_text("".join(f"q{at} 0 {made[at]['id']} 1\n" for at in asked), "utf-8")
    (folder / "dataset.json").write_text('{"name": "notes", "text_for_embedding": "{title} {text}"}', "utf-8")


def spent(words, folder):
    """Seconds of the processor and by the clock of a Python in a process of its own."""
    own = {"STEELYARD_RUNS": "off", "XDG_CACHE_HOME": folder}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, cwd=folder, env=os.environ | own, capture_output=True)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def waits(count):
    """Of each command the processor time, by the clock, and as a multiple of the loop, in medians."""
    taken = {name: [] for name in JOBS}
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as place:
            notes(Path(place) / "mine", count)
            for name, job in JOBS.items():
                least, _ = spent(LOOP, place)
                cpu, clock = spent(("-m", "steelyard_eval", *job.split()), place)
                taken[name].append((cpu, clock, cpu / least))
    return {name: [statistics.median(one) for one in zip(*rows, strict=True)] for name, rows in taken.items()}


def page(sizes):
    """The lines of the page."""
    load, day = os.getloadavg()[0], datetime.now(UTC).date()
    yield f"# What you wait for\n\n`make bench` on {day}, {os.cpu_count()} cores, load {load:.1f} at first."
    yield "Seconds of the processor, by the clock, and the processor's as a multiple of a fixed loop, in medians."
    for count in sizes:
        yield f"\n| {count:,} entries, {QUERIES} queries | processor | clock | x loop |\n|---|---:|---:|---:|"
        for name, (cpu, clock, ratio) in waits(count).items():
            yield f"| {name} | {cpu:.2f} | {clock:.2f} | {ratio:.1f} |"


if __name__ == "__main__":
    lines = []
    for line in page((*SIZES, LARGE) if "--large" in sys.argv else SIZES):
        print(line, flush=True)
        lines.append(f"{line}\n")
    if "--write" in sys.argv:
        PAGE.write_text("".join(lines), "utf-8")
