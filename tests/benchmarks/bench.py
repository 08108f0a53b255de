"""Speed, as ratios against peers in the same process: `make bench`, with --json for a document.

One thread each. Times are medians of repeated runs; what counts are the ratios, because machines differ.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import pytrec_eval

from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard.table import SignalTable
from steelyard_eval.datasets import load
from steelyard_eval.demo import starter
from steelyard_eval.metrics import Judgments, parse_measures
from steelyard_eval.record import record
from steelyard_eval.replay import replay
from steelyard_eval.workspace import Workspace

REPEATS = 9


def median(work: Callable[[], object]) -> float:
    """Median seconds of a call, after one that warms up."""
    work()
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def replay_against_dictionaries(space: Workspace) -> list[dict[str, object]]:
    """One configuration over all queries, beside dictionaries fused in Python and given to pytrec_eval."""
    queries = space.dataset.queries
    config: SearchConfig = find_system("plain").config(10, space.model)
    config = config.with_strategy(parse_strategy("weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"))
    table = record(space, queries, [config])
    judgments = Judgments.of(space.dataset.qrels, table.queries, table.entries)
    measures = parse_measures(["nDCG@10", "R@10"])
    oracle = pytrec_eval.RelevanceEvaluator(space.dataset.qrels, {"ndcg_cut_10", "recall_10"})
    lists = {name: dictionaries(table, name) for name in ("bm25", "vector")}
    ours = median(lambda: replay(table, config).metrics(judgments, measures))
    theirs = median(lambda: oracle.evaluate({query: fused(lists, query) for query in table.queries}))
    return [
        {"what": "replay: fuse, rank, evaluate", "peer": "dictionaries and pytrec_eval", "ms": ours * 1e3}
        | {"peer_ms": theirs * 1e3, "ratio": theirs / ours, "queries": len(queries), "rows": len(table)}
    ]


def dictionaries(table: SignalTable, name: str) -> dict[str, dict[str, float]]:
    """The lists of one retriever as query -> entry -> score."""
    found: dict[str, dict[str, float]] = {query: {} for query in table.queries}
    for query, entry, score in zip(table.query, table.entry, table.columns[name], strict=True):
        if score == score:
            found[table.queries[query]][table.entries[entry]] = float(score)
    return found


def fused(lists: dict[str, dict[str, dict[str, float]]], query: str) -> dict[str, float]:
    """Half and half after min-max, as a script would do it."""
    total: dict[str, float] = {}
    for own in lists.values():
        scores = own[query]
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        for entry, score in scores.items():
            part = (score - low) / (high - low) if high > low else 1.0
            total[entry] = total.get(entry, 0.0) + 0.5 * part
    return total


def live_against_recording(space: Workspace) -> list[dict[str, object]]:
    """What a recording saves: searching live once, beside replaying it once."""
    config = find_system("echovault").config(10, space.model)
    table = record(space, space.dataset.queries, [config])
    searcher = space.searcher(config)
    live = median(lambda: [searcher.search(query) for query in space.dataset.queries])
    ours = median(lambda: replay(table, config))
    return [
        {"what": "replay of echovault", "peer": "live search of the same queries", "ms": ours * 1e3}
        | {"peer_ms": live * 1e3, "ratio": live / ours, "queries": len(table.queries), "rows": len(table)}
    ]


def main() -> None:
    """Print the table, or the document with --json."""
    space = Workspace.open(load(starter()))
    rows = [*replay_against_dictionaries(space), *live_against_recording(space)]
    if "--json" in sys.argv:
        print(json.dumps({"rows": rows, "repeats": REPEATS}, indent=2))
        return
    for row in rows:
        print(f"{row['what']}: {row['ms']:.2f} ms; {row['peer']}: {row['peer_ms']:.2f} ms; x {row['ratio']:.1f}")


if __name__ == "__main__":
    main()
