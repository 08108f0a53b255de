"""A feedback log of a million searches: validated, counted and learned from; prints time and memory."""

import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard import find_system, parse_strategy
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.learn.decision import decide_from_log
from steelyard_eval.learn.joined_log import prepare

SECONDS, GIBIBYTES = 60, 1
POLICY = "weighted_sum(0.8*bm25, 0.2*vector, normalize=minmax)"
CLIENTS, DAYS = 2_000, 300


def write(path, dataset, count):
    """Searches of many clients on many days, each with the list that the policy shows and an act or none."""
    config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy(POLICY))
    with tempfile.TemporaryDirectory() as folder:
        compare(dataset, [config], split="all", runs=folder, limit=10, timed=False)
        lists = {}
        for line in next(Path(folder).glob("*.run")).read_text().splitlines():
            query, _, entry, *_ = line.split()
            lists.setdefault(query, []).append(entry)
    texts = {query.id: query.text for query in dataset.queries}
    heads = {}
    for query, entries in lists.items():
        hits = [{"object_id": e, "position": at, "score": 1 / at} for at, e in enumerate(entries, 1)]
        head = {"schema_version": 1, "query_id": query, "user_query": texts[query], "policy": "p", "hits": hits}
        heads[query] = json.dumps(head)[:-1]
    rng = np.random.default_rng(0)
    names = list(heads)
    weight = 1 / np.arange(1, len(names) + 1)
    with path.open("w") as out:
        for begin in range(0, count, 100_000):
            n = min(100_000, count - begin)
            query, client = rng.choice(len(names), n, p=weight / weight.sum()), rng.integers(0, CLIENTS, n)
            day = (begin + np.arange(n)) * DAYS // count
            place, acts = rng.integers(0, 10, n), rng.random(n) < 0.6
            for q, c, d, k, acted in zip(query, client, day, place // 2, acts, strict=True):
                name = names[q]
                done = f'[{{"object_id":"{lists[name][min(k, len(lists[name]) - 1)]}","action_name":"clicked"}}]'
                when = f"2026-{1 + d // 28:02}-{1 + d % 28:02}T12:00:00Z"
                stamp = f'"client_id":"c{c}","timestamp":"{when}"'
                out.write(f'{heads[name]},{stamp},"actions":{done if acted else "[]"}}}\n')


def run(count):
    """Seconds of each step, the peak of memory in GiB, and what was read."""
    dataset = load(starter())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        write(path, dataset, count)
        size = path.stat().st_size
        begin = time.perf_counter()
        case = prepare(dataset, path, POLICY, now=2e9)
        read = time.perf_counter()
        decide_from_log(case, True).verdict  # noqa: B018 -- it is made when it is asked for
        done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    census = case.log.census
    return {
        "impressions": count,
        "used": census.impressions,
        "megabytes": round(size / 1e6),
        "read_and_joined_s": round(read - begin, 1),
        "learned_s": round(done - read, 1),
        "peak_gib": round(peak, 2),
    }


def main():
    for count in (10_000, 1_000_000):
        found = run(count)
        print(json.dumps(found))
    total = found["read_and_joined_s"] + found["learned_s"]
    print(f"a million in {SECONDS} s: {'met' if total <= SECONDS else 'not met'}", end=", ")
    print(f"in {GIBIBYTES} GiB: {'met' if found['peak_gib'] <= GIBIBYTES else 'not met'}")


if __name__ == "__main__":
    main()
