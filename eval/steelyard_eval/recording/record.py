"""Records the signal table of each system, by running its retrievers once over many queries."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from steelyard.base.errors import collect_errors
from steelyard.config import SearchConfig
from steelyard.embedders.embed import resumable
from steelyard.finish import Mmr, Rerank, reranked, to_rerank
from steelyard.fusion import Expr, fuse
from steelyard.memory.query import Query
from steelyard.retrievers import CANDIDATE_RETRIEVERS, DEPENDENT, FETCHED, LAYERS
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.console import LOGGER, bar
from steelyard_eval.datasets import CLASSIFIED
from steelyard_eval.recording.disk import save
from steelyard_eval.recording.workspace import Workspace, estimate_cost


def record(
    workspace: Workspace, queries: Sequence[Query], configs: Iterable[SearchConfig], rerank: str = "top"
) -> SignalTable:
    """Record one table for configurations that share it: all their signals, to their greatest depth."""
    with begun(workspace, queries, configs, rerank) as finished:
        return finished()


@contextmanager
def begun(
    workspace: Workspace, queries: Sequence[Query], configs: Iterable[SearchConfig], rerank: str = "top"
) -> Iterator[Callable[[], SignalTable]]:
    """Index for a recording and give it to the workers, if there are any; what is yielded makes the table."""
    chosen, data = list(configs), workspace.dataset
    every = {name: settings for config in chosen for name, settings in config.retrievers.items()}
    signals = set(workspace.usable(needed(chosen)))
    entries, depths = len(data.entries), {d for c in chosen for name, d in c.depths.items() if name not in LAYERS}
    depth = None if None in depths else max(filter(None, depths), default=None)
    if told := in_words(len(queries), len(signals), depth or entries, entries, workspace.workers.jobs):
        LOGGER.info("recording %s of %s", ", ".join(sorted(signals)), told)
    with resumable(workspace.embedder):
        workspace.index_for([find_system(chosen[0].name)], signals)
    progress = partial(bar, f"recording {', '.join(sorted({config.system for config in chosen}))}")
    searcher = workspace.searcher(replace(chosen[0], retrievers=every))
    queries = data.with_known_intents(queries, searcher.knows)
    rescores = any(isinstance(stage, Rerank | Mmr) for config in chosen for stage in config.finish)
    key = (searcher.config, signals, depth, workspace.store.revision())
    if not rescores and (table := workspace.tables.find(key, queries)) is not None:
        yield lambda: table
        return
    with ExitStack() as ending:
        parts_of = None
        if workspace.shares(len(queries), len(signals)):
            from steelyard_eval.recording.workers import submitted

            with resumable(workspace.embedder):
                given = submitted(searcher, queries, sorted(signals), depth, workspace)
                parts_of = ending.enter_context(given)

        def finished() -> SignalTable:
            with resumable(workspace.embedder), workspace.store.snapshot():  # of one state, looked at once
                parts = parts_of and parts_of(progress)
                table = searcher.record(queries, signals, depth, data.sha256, progress, parts, keep=True)
            if rescoring := [config for config in chosen if reranked(config.finish)]:
                rows = np.full(len(table), rerank == "all")  # else the places that these configurations read
                for config in rescoring if rerank != "all" else []:
                    masked = table.at_depth(config.depths)
                    rows |= to_rerank(masked, fuse(masked, config.effective), config.finish)
                table = workspace.searcher(rescoring[0]).rerank(queries, table, rows)
            if any(isinstance(stage, Mmr) for config in chosen for stage in config.finish):
                table = searcher.with_vectors(table)
            added = {"vectors": data.vectors_sha256, "intents": data.intents or CLASSIFIED}
            table = replace(table, fingerprint={**table.fingerprint, **added})
            if not rescores:
                workspace.tables.keep(key, queries, table)
            return table

        yield finished


def index_all(workspace: Workspace, configs: Iterable[SearchConfig]) -> None:
    """Index for configurations before the first is recorded: what is read of a store is kept until it changes."""
    signals: dict[str, set[str]] = {}
    for config in configs:
        signals.setdefault(config.name, set()).update(workspace.usable(needed([config])))
    with resumable(workspace.embedder):
        for name, read in signals.items():
            workspace.index_for([find_system(name)], read)


def record_systems(
    workspace: Workspace, systems: list[str], out: Path, split: str | None, limit: int, rerank: str = "top"
) -> dict[str, int]:
    """Record each system to OUT/<system>.<profile>; return the number of rows by folder."""
    queries = workspace.dataset.split(split)
    named = collect_errors(*(partial(find_system, name) for name in systems))
    chosen = [system for i, system in enumerate(named) if system not in named[:i]]
    configs = [system.config(limit, workspace.model, os.environ) for system in chosen]
    written = {}
    with ExitStack() as ending:
        index_all(workspace, configs)  # so that all read one vault
        # All are under way at once, so that workers never wait.
        recordings = [ending.enter_context(begun(workspace, queries, [config], rerank)) for config in configs]
        for system, finished in zip(chosen, recordings, strict=True):
            table = finished()
            folder = out / f"{system.name}.{system.profile}"
            save(table, folder)
            written[str(folder)] = len(table)
    return written


def ranks_candidates(expr: Expr) -> bool:
    """Whether a strategy, or a tier or case in it, names no retriever and so ranks all candidates there are."""
    finders = (child for child in expr.children if child.retrievers or expr.routes)
    return not expr.retrievers or any(map(ranks_candidates, finders))


def needed(configs: Iterable[SearchConfig]) -> list[str]:
    """List the signals that live search could fetch for these configurations.

    A strategy or a tier of scorers alone ranks what all of the system's retrievers find, so it needs them all.
    """
    names: set[str] = set()
    for config in configs:
        names |= (config.effective.signals & FETCHED) | config.needs
        if ranks_candidates(config.effective):
            names |= CANDIDATE_RETRIEVERS & config.retrievers.keys()
        for name in names & DEPENDENT & config.retrievers.keys():
            names |= set(config.before(name))
    return sorted(names)


LONG, LARGE = 60.0, 2.0**30  # seconds and bytes from which the price is told


def in_words(queries: int, retrievers: int, depth: int, entries: int, jobs: int = 1) -> str:
    """The price where it is worth a word; empty where it is small."""
    seconds, size = estimate_cost(queries, retrievers, depth, entries)
    if seconds / jobs < LONG and size < LARGE:
        return ""
    long = f"{max(1, round(seconds / jobs / 60))} min and {size / 1e9:.1f} GB"
    return f"{queries:,} queries over {entries:,} entries: about {long}; --split takes a part of them"
