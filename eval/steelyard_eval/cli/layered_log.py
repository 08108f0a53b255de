"""A feedback log as a result, for a report: how far the layered searches in it went, in total."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec

from steelyard import __version__
from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.fusion.progress import Progress
from steelyard_eval.compare.compare import layers_of
from steelyard_eval.datasets.logs import MOST_HITS, decode, lines_of
from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result, Said

SUFFIXES = (".jsonl", ".jsonl.gz")


def of_log(path: str | Path) -> Result:
    """The totals of every configuration; DataError for a log without layered searches."""
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
    rows = [
        (f"{systems.get(policy, 'policy')} {policy}".strip(), Progress.of_counts(searches).summary())
        for policy, searches in counts.items()
    ]
    queries, reached = sum(row["queries"] for _, row in rows), sum(row["at_threshold"] for _, row in rows)
    details, empty = sum(row["full_search"] for _, row in rows), sum(row["without_result"] for _, row in rows)
    lower = queries - reached - details
    facts = {"queries": queries, "reached": reached, "lower": lower, "details": details, "empty": empty}
    return Result(
        "learn",
        Answer("layered_log", {**facts}),
        Provenance(f"steelyard {__version__}", DataFacts(Path(path).name), limit=MOST_HITS),
        notices=[Said("broken_lines", {"count": broken})] if broken else [],
        tables=layers_of(rows),
    )
