"""Processor time of commands on 60 notes with 30 queries: `make bench`, or python tests/benchmarks/commands.py.

Most of it is imports. The ratio is to a Python that imports numpy, the least that any of them needs. Each is the
median of five runs, every one in a process of its own. Then what a stranger waits for: a folder of 1,000 Markdown
notes to the first sentence, with no cache of anything and no recorded vectors.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 5
STARTER = ROOT / "qrels" / "starter"
NUMPY = ("-c", "import numpy")
FIRST = ("import notes mine", "recommend mine")


def notes(folder):
    """Write the first 60 entries of starter, the 30 queries that have most labels there, and these labels."""
    entries = (STARTER / "corpus.jsonl").read_text("utf-8").splitlines()[:60]
    ids = {json.loads(line)["id"] for line in entries}
    labels = [line for line in (STARTER / "qrels.txt").read_text("utf-8").splitlines() if line.split()[2] in ids]
    judged = [line.split()[0] for line in labels]
    asked = map(json.loads, (STARTER / "queries.jsonl").read_text("utf-8").splitlines())
    texts = {one["id"]: one["text"] for one in asked}
    chosen = sorted(texts, key=lambda id_: (-judged.count(id_), id_))[:30]
    queries = [json.dumps({"id": id_, "text": texts[id_]}) for id_ in chosen]
    labels = [line for line in labels if line.split()[0] in chosen]
    (folder / "corpus.jsonl").write_text("\n".join(entries) + "\n", "utf-8")
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", "utf-8")
    (folder / "qrels.txt").write_text("\n".join(labels) + "\n", "utf-8")
    (folder / "dataset.json").write_text('{"name": "notes", "text_for_embedding": "{title} {text}"}', "utf-8")


def markdown(folder):
    """Write 1,000 notes, each of two entries of starter and workshop (561 have a text), none twice."""
    files = (ROOT / "qrels" / name / "corpus.jsonl" for name in ("starter", "workshop"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    entries = [entry for entry in map(json.loads, lines) if entry.get("text")]
    folder.mkdir()
    for at in range(1000):
        one, other = entries[at % len(entries)], entries[(7 * at + at // len(entries) + 1) % len(entries)]
        text = f"# {one['title']}\n\n{one['text']}\n\n## {other['title']}\n\n{other['text']}\n"
        (folder / f"note-{at:04}.md").write_text(text, "utf-8")


def first_sentence(jobs):
    """Processor and wall time from notes to the sentence, in a new HOME each time."""
    taken = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            markdown(home / "notes")
            own = {"HOME": place, "XDG_CACHE_HOME": str(home / "cache")}
            began = time.perf_counter()
            ran = [spent(("-m", "steelyard_eval", *job.split()), home, **own) for job in jobs]
            taken.append((sum(cpu for cpu, _ in ran), time.perf_counter() - began))
            if "no labels yet" not in " ".join(ran[-1][1].split()).lower():
                raise SystemExit(f"no sentence in:\n{ran[-1][1]}")
    cpu, wall = zip(*taken, strict=True)
    return statistics.median(cpu), statistics.median(wall)


def spent(words, folder, **variables):
    """The processor time of a Python in a process of its own, and what it printed."""
    how = {"cwd": folder, "env": os.environ | variables, "capture_output": True, "encoding": "utf-8"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], check=True, **how)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def seconds(words, folder):
    own = {"OPENBLAS_NUM_THREADS": "1", "STEELYARD_RUNS": "off", "XDG_CACHE_HOME": str(folder)}
    return statistics.median(spent(words, folder, **own)[0] for _ in range(RUNS))


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "mine").mkdir()
        notes(folder / "mine")
        first = json.loads((folder / "mine" / "queries.jsonl").open().readline())["id"]
        least = seconds(NUMPY, folder)
        print(f"{'import numpy':42} {least:6.2f} s")
        usual = ("--help", "check mine", "compare mine", f"explain mine {first}")
        for job in (*usual, "index mine mine.db", "search mine.db keys"):
            took = seconds(("-m", "steelyard_eval", *job.split()), folder)
            print(f"{f'steelyard {job}':42} {took:6.2f} s  {took / least:5.1f} x")
    cpu, wall = first_sentence(FIRST)
    commands = "; ".join(f"steelyard {job}" for job in FIRST)
    print(f"1,000 notes: {commands}: {cpu:.1f} s, {wall:.1f} s on the clock")


if __name__ == "__main__":
    main()
