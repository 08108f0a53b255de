"""Imports of stores of two sizes: seconds and the most memory of `steelyard import`, each in a process of its own.

    python tests/benchmarks/importing.py [--entries 10000 100000]

EchoVault's store is made of the tables of its schema that entries are read from, JSON Lines and Markdown as people
write them: about 600 characters an entry, three tags, dates, details of every fourth. It prints a Markdown table.
"""

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [
    f"{first}{last}" for first in ("ka", "lo", "mi", "ne", "ru", "sa", "to", "vi") for last in "abcdefghijklmnop"
]
MEMORIES = (
    *("id", "title", "what", "why", "impact", "tags", "category", "project", "source", "related_files"),
    *("file_path", "section_anchor", "created_at", "updated_at"),
)


def notes(count):
    """Entries with words drawn by a seed."""
    draw = random.Random(0)  # noqa: S311 -- words, not secrets
    for at in range(count):
        day = f"2026-{1 + at % 12:02}-{1 + at % 28:02}T08:00:00+00:00"
        words = [" ".join(draw.choices(WORDS, k=k)) for k in (6, 80, 30, 30)]
        yield f"note-{at:07}", *words, draw.sample(WORDS, 3), day


def echovault(folder, count):
    folder.mkdir()
    with sqlite3.connect(folder / "index.db") as db:
        db.execute(f"CREATE TABLE memories (rowid INTEGER PRIMARY KEY, {', '.join(MEMORIES)})")
        db.execute("CREATE TABLE memory_details (memory_id TEXT PRIMARY KEY, body TEXT)")
        for at, (id_, title, what, why, impact, tags, day) in enumerate(notes(count)):
            row = (
                id_,
                title,
                what,
                why,
                impact,
                json.dumps(tags),
                "decision",
                "ops",
                "",
                "[]",
                "a.md",
                "",
                day,
                day,
            )
            marks = ", ".join("?" * len(MEMORIES))
            db.execute(f"INSERT INTO memories ({', '.join(MEMORIES)}) VALUES ({marks})", row)
            if at % 4 == 0:
                db.execute("INSERT INTO memory_details VALUES (?, ?)", (id_, what))
    return folder


def json_lines(folder, count):
    folder.mkdir()
    with (folder / "notes.jsonl").open("w") as stream:
        for id_, title, what, why, impact, tags, day in notes(count):
            text = f"{what}\n\n{why}\n\n{impact}"
            stream.write(
                json.dumps({"id": id_, "title": title, "content": text, "tags": tags, "created_at": day}) + "\n"
            )
    return folder / "notes.jsonl"


def markdown(folder, count):
    folder.mkdir()
    for id_, title, what, why, impact, tags, day in notes(count):
        head = f"---\ntitle: {title}\ntags: [{', '.join(tags)}]\ncreated: {day}\n---\n"
        (folder / f"{id_}.md").write_text(f"{head}{what}\n\n{why}\n\n{impact}\n")
    return folder


def measured(source, out, state):
    """Seconds by the clock (of the processor) and MB of one import, and of bringing the same folder up to date."""
    found = []
    for _ in range(2):
        begin = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-m", "steelyard_eval", "import", source, out],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "XDG_STATE_HOME": str(state)},
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"the import of {source} failed")
        busy = used.ru_utime + used.ru_stime
        found.append((f"{time.perf_counter() - begin:.0f} s ({busy:.1f} s)", used.ru_maxrss / 1024))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, nargs="*", default=[10_000, 100_000])
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| store | entries | import | again, unchanged | most memory |\n|---|---|---|---|---|")
    for count in args.entries:
        for name, make in (("EchoVault", echovault), ("JSON Lines", json_lines), ("Markdown", markdown)):
            with tempfile.TemporaryDirectory(prefix="steelyard-") as root:
                source = make(Path(root) / "store", count)
                (first, mb), (again, mb_again) = measured(source, Path(root) / "mine", Path(root) / "state")
            print(f"| {name} | {count:,} | {first} | {again} | {max(mb, mb_again):.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
