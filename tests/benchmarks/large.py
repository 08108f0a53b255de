"""A million entries: built, recorded and searched live, each step in a process of its own; `make bench-large`.

Vaults and figures are kept in a folder. What was measured is not measured again, and a build that was interrupted
goes on where it stopped; `--again STEP` repeats a step. Texts and vectors are made 10,000 at a time (see
`synthetic.Parts`), and every step prints the most memory that its process took.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import synthetic

from steelyard.embedders.embed import RecordedEmbedder
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import analyses, find_system, keyword_indexes

MODEL = RECIPE = "synthetic"
SPACE = Space(MODEL, "text", RECIPE)
HYBRID = "rrf(bm25, vector, k=60)"
SYSTEMS = ("bm25", "vector", "hybrid", "fts", "echovault", "soleri", "moltnet")
BUILD = ("entries", "vectors", "questions", "keywords", "words")
LIMIT, DEPTH = 10, 100
WARM, LIVE = 10, 100
"""Searches before the clock is read, and those whose times are printed."""


def config_of(name):
    """The configuration of a system; `hybrid` is keywords and vectors by rank."""
    if name != "hybrid":
        return find_system(name).config(LIMIT, MODEL)
    return find_system("plain").config(LIMIT, MODEL).with_strategy(parse_strategy(HYBRID))


# What is built: every step goes on where it stopped


def build_entries(vault, args):
    """Texts, a part a transaction."""
    parts = synthetic.Parts()
    for number, count in parts_of(args.entries, vault.count()):
        vault.upsert(parts.memory(number, count).entries)
        progress("entries", number, args)


def build_vectors(vault, args):
    """Vectors, a part a transaction."""
    parts = synthetic.Parts()
    done = args.entries - len(vault.missing(SPACE))
    for number, count in parts_of(args.entries, done):
        first = number * synthetic.PART
        ids = [f"m{at:06d}" for at in range(first, first + count)]
        vault.put_vectors(SPACE, ids, parts.vectors(number, args.dim, count))
        progress("vectors", number, args)


def build_keywords(vault, args):
    """The FTS5 tables of the systems."""
    for index in keyword_indexes(searched(args)):
        vault.ensure_index(index)


def build_words(vault, args):
    """The words that the systems count, in tables of the vault."""
    vault.ensure_words(analyses(searched(args)))


def build_questions(vault, args):
    """Questions of words of entries all over the memory, with vectors near stored ones."""
    parts, chosen = synthetic.Parts(), parts_of(args.entries, 0)
    chosen = chosen[:: max(1, len(chosen) // 10)]
    texts, rows = [], []
    for number, count in chosen:
        each = math.ceil(args.queries / len(chosen))
        texts += synthetic.questions(parts.memory(number, count), each, seed=number)
        rows.append(synthetic.probes(parts.vectors(number, args.dim, count), each, seed=number))
    beside(args, ".questions.json").write_text(json.dumps(texts), encoding="utf-8")
    np.save(beside(args, ".questions.npy"), np.concatenate(rows))


def searched(args):
    """The systems that are searched."""
    return [find_system("plain" if name == "hybrid" else name) for name in args.systems]


def parts_of(entries, done):
    """(number, size) of the parts that are not there yet."""
    size = synthetic.PART
    return [(at // size, min(size, entries - at)) for at in range(done // size * size, entries, size)]


def progress(what, number, args):
    if number % 10 == 9:
        print(f"  {what}: {(number + 1) * synthetic.PART:,} of {args.entries:,}", file=sys.stderr, flush=True)


# What is measured


def asked(args):
    """The queries, and the embedder that knows their vectors."""
    texts = json.loads(beside(args, ".questions.json").read_text(encoding="utf-8"))
    vectors = np.load(beside(args, ".questions.npy"))
    queries = [Query(text, id=f"q{at}") for at, text in enumerate(texts)]
    return queries, RecordedEmbedder(MODEL, RECIPE, dict(zip(texts, vectors, strict=True)))


def record(vault, args, queries, embedder):
    """All queries of `hybrid`, as a recording holds them."""
    searcher = Searcher(vault, config_of("hybrid"), embedder, clock=lambda: synthetic.NOW)
    table = searcher.record(queries[: args.queries], ["bm25", "vector"], DEPTH, "synthetic")
    return {"queries": args.queries, "rows": len(table)}


def live(vault, args, queries, embedder):
    """One system as a program that stays searches it: the first searches, many, and the first after a write."""
    searcher = Searcher(vault, config_of(args.system), embedder, clock=lambda: synthetic.NOW)
    first, second, *_ = [timed(lambda q=q: searcher.search(q)) for q in queries[: 2 + WARM]]
    taken = [timed(lambda q=q: searcher.search(q)) for q in queries[2 + WARM : 2 + WARM + LIVE]]
    after = [written(vault, args, searcher, queries[at]) for at in range(3)]
    clock, cpu = np.array(taken).T
    return {
        "first": first[0],
        "second": second[0],
        "p50": float(np.median(clock)),
        "p95": float(np.percentile(clock, 95)),
        "cpu_p50": float(np.median(cpu)),
        "after_write": float(np.median([clock for clock, _ in after])),
        "memory": memory()["now"],
    }


def written(vault, args, searcher, query):
    """The time of a search that follows a write by another connection; the vault is then as it was."""
    with Vault(vault.path) as other:
        other.upsert([Entry("new", title=query.text, text=query.text)])
        other.put_vectors(SPACE, ["new"], searcher_vector(query, args))
    taken = timed(lambda: searcher.search(query))
    with Vault(vault.path) as other:
        other.delete(["new"])
    searcher.search(query)
    return taken


def searcher_vector(query, args):
    """Some vector for the entry that is written."""
    return np.random.default_rng(len(query.text)).standard_normal((1, args.dim), dtype=np.float32)


def timed(call):
    """Milliseconds of the clock and of the processor."""
    begin, worked = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - begin) * 1e3, (time.process_time() - worked) * 1e3


def memory():
    """MiB of this process: its own now, and at most with the pages of files that it maps."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {name: int(found[key].split()[0]) / 1024 for name, key in (("now", "RssAnon"), ("peak", "VmHWM"))}


# One step a process


def step(args):
    """Run a step and print what it took."""
    path = beside(args, ".db")
    if args.step in BUILD:
        with Vault(path, create=True) as vault:
            clock, cpu = timed(lambda: globals()[f"build_{args.step}"](vault, args))
        found = {}
    else:
        queries, embedder = asked(args)
        with Vault(path) as vault:
            results = []
            measure = record if args.step == "record" else live
            clock, cpu = timed(lambda: results.append(measure(vault, args, queries, embedder)))
            found = results[0]
    return {**found, "seconds": clock / 1e3, "cpu": cpu / 1e3, "peak": memory()["peak"]}


def beside(args, suffix):
    """A file of one size of memory."""
    return Path(args.folder) / f"{args.entries}x{args.dim}{suffix}"


def steps(args):
    """The steps of one size and what each gave; those whose figures are kept are not run again."""
    kept = beside(args, ".json")
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    for name in (*BUILD, "record", *(f"live {system}" for system in args.systems)):
        label = name + (f" {os.environ['STEELYARD_VECTORS']}" if named(name) else "")
        if label in known and name.split()[0] not in args.again and name not in args.again:
            continue
        print(f"{args.entries:,} x {args.dim}: {label}", file=sys.stderr, flush=True)
        kind, _, system = name.partition(" ")
        known[label] = {**child(args, kind, system), "file": size_of(args)}
        kept.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return known


def named(step_name):
    """Whether a step searches vectors in a way that the environment names."""
    return step_name not in BUILD and "STEELYARD_VECTORS" in os.environ


def child(args, kind, system):
    """Run a step in a process of its own."""
    command = [sys.executable, __file__, "--folder", args.folder, "--entries", str(args.entries)]
    command += ["--dim", str(args.dim), "--queries", str(args.queries), "--systems", ",".join(args.systems)]
    done = subprocess.run([*command, "--step", kind, "--system", system], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def size_of(args):
    """MiB of the vault and of what lies beside it."""
    return sum(path.stat().st_size for path in Path(args.folder).glob(f"{args.entries}x{args.dim}.db*")) / 2**20


# What is printed

BUILT = {"seconds": "s", "cpu": "CPU s", "peak": "most MiB", "file": "file MiB"}
SEARCHED = {
    "p50": "p50 ms",
    "p95": "p95 ms",
    "first": "first ms",
    "second": "second ms",
    "after_write": "after a write ms",
    "memory": "MiB",
}


def report(found):
    """Both tables: a row a step and figure, a column a size, and the exponent with which it grows."""
    sizes = list(found)
    steps_ = list(dict.fromkeys(name for known in found.values() for name in known))
    head = f"{'':<24}{'':<18}" + "".join(f"{size:>14,}" for size in sizes) + f"{'exponent':>10}"
    for title, live_, columns in (("building and recording", False, BUILT), ("live search", True, SEARCHED)):
        print(f"\n{title}\n{head}")
        for name in steps_:
            if name.startswith("live") == live_:
                for key, unit in columns.items():
                    print(line(name, unit, sizes, [found[size].get(name, {}).get(key) for size in sizes]))


def line(name, unit, sizes, values):
    known = [(size, value) for size, value in zip(sizes, values, strict=True) if value]
    cells = "".join(f"{'' if value is None else f'{value:,.1f}':>14}" for value in values)
    grows = f"{np.polyfit(*np.log(known).T, 1)[0]:.2f}" if len(known) > 1 else ""
    return f"{name.removeprefix('live '):<24}{unit:<18}{cells}{grows:>10}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="reports/large", help="where vaults and figures are kept")
    parser.add_argument("--entries", default="10000,100000,1000000", help="sizes, ascending")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1000, help="of the recording")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--again", default="", help="steps to repeat: record,live or 'live bm25'")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--system", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.systems, args.again = args.systems.split(","), args.again.split(",")
    sizes = [int(size) for size in args.entries.split(",")]
    args.entries = sizes[0]
    if args.step:
        print(json.dumps(step(args)))
        return
    Path(args.folder).mkdir(parents=True, exist_ok=True)
    found = {}
    for args.entries in sizes:
        found[args.entries] = steps(args)
    report(found)


if __name__ == "__main__":
    main()
