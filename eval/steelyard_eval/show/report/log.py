"""A feedback log as results for a report: how far the layered searches in it went, in total."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.fusion.progress import Progress
from steelyard_eval.common.documents.results import LayersRecord, ResultsDocument
from steelyard_eval.datasets.logs import MOST_HITS, decode, lines_of

SUFFIXES = (".jsonl", ".jsonl.gz")


def of_log(path: str | Path) -> ResultsDocument:
    """Results that hold the totals of every configuration; DataError for a log without layered searches."""
    counts: dict[str, list[dict[str, int]]] = defaultdict(list)
    systems: dict[str, str] = {}
    broken = 0
    for _, raw in lines_of(path):
        try:
            line = decode(raw)
        except ValueError:
            broken += 1
            continue
        if line.configuration is not None:
            systems[line.policy] = f"{line.configuration.get('system')}:{line.configuration.get('profile')}"
        if line.layers is not None:
            counts[line.policy].append(msgspec.to_builtins(line.layers))
    if not counts:
        place = shown(str(path), PATH_WIDTH)
        raise DataError(
            f"{place} holds no layered search; log some with steelyard search --system cortex_mem --log"
        )
    rows: list[LayersRecord] = [
        {"label": f"{systems.get(policy, 'policy')} {policy}".strip(), **Progress.of_counts(searches).summary()}
        for policy, searches in counts.items()
    ]
    return {
        "schema_version": 1,
        "dataset": {"name": Path(path).name},
        "split": "all",
        "limit": MOST_HITS,
        "primary": "layers",
        "configurations": [],
        "results": [],
        "comparisons": [],
        "sentence": _sentence(rows),
        "notices": [f"{broken} lines of the log could not be read"] if broken else [],
        "layers": rows,
    }


def _sentence(rows: list[LayersRecord]) -> str:
    queries, reached = sum(row["queries"] for row in rows), sum(row["at_threshold"] for row in rows)
    details, empty = sum(row["full_search"] for row in rows), sum(row["without_result"] for row in rows)
    return (
        f"Of {queries} layered searches {reached} found abstracts at the threshold and "
        f"{queries - reached - details} at a lower step, {details} searched all details; {empty} ended without a "
        "result."
    )
