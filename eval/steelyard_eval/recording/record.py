"""Records the signal table of each system, by running its retrievers once over many queries."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from steelyard.config.search_config import SearchConfig
from steelyard.embedders import resumable
from steelyard.finish import diversified, reranked, to_rerank
from steelyard.fusion import fuse
from steelyard.memory.query import Query
from steelyard.retrievers import DEPENDENT, FETCHED, FINDERS, LAYERS
from steelyard.systems import find_system, find_systems
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.datasets import CLASSIFIED, Dataset
from steelyard_eval.recording.disk import save
from steelyard_eval.recording.price import in_words
from steelyard_eval.recording.workers import submitted
from steelyard_eval.recording.workspace import Workspace

LOGGER = logging.getLogger("steelyard")


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
    chosen = list(configs)
    system = find_system(chosen[0].name)
    every = {name: settings for config in chosen for name, settings in config.retrievers.items()}
    signals = set(workspace.usable(needed(chosen)))
    depths = [depth for c in chosen for name, depth in c.depths.items() if name not in LAYERS]
    known = [depth for depth in depths if depth is not None]
    entries = len(workspace.dataset.entries)
    if told := in_words(len(queries), len(signals), max(known, default=entries), entries, workspace.workers.jobs):
        LOGGER.info("recording %s of %s", ", ".join(sorted(signals)), told)
    with resumable(workspace.embedder):
        workspace.index_for([system], signals)
    depth = max(known, default=None) if len(known) == len(depths) else None
    label = f"recording {', '.join(sorted({config.system for config in chosen}))}"
    searcher = workspace.searcher(replace(chosen[0], retrievers=every))
    queries = workspace.dataset.asked(queries, searcher.knows)
    rescores = any(reranked(config.finish) or diversified(config.finish) for config in chosen)
    key = (searcher.config, signals, depth, workspace.store.revision())
    if not rescores and (table := workspace.tables.find(key, queries)) is not None:
        yield lambda: table
        return
    data = workspace.dataset
    with ExitStack() as ending:
        parts_of = None
        if workspace.workers.share(len(queries)):
            with resumable(workspace.embedder):
                parts_of = ending.enter_context(
                    submitted(
                        searcher,
                        queries,
                        sorted(signals),
                        depth,
                        workers=workspace.workers,
                        as_of=data.as_of,
                        embedder=workspace.embedder,
                        corpus=(data.sha256, data.vectors_sha256),
                    )
                )

        def finished() -> SignalTable:
            with resumable(workspace.embedder):
                parts = parts_of and parts_of(bar(label))
                table = searcher.record(queries, signals, depth, data.sha256, bar(label), parts, workspace.kept)
            if any(reranked(config.finish) for config in chosen):
                table = rescored(workspace, queries, chosen, table, rerank)
            if any(diversified(config.finish) for config in chosen):
                table = searcher.with_vectors(table)
            added = {"vectors": data.vectors_sha256, "intents": data.intents or CLASSIFIED}
            table = replace(table, fingerprint={**table.fingerprint, **added})
            if not rescores:
                workspace.tables.keep(key, queries, table)
            return table

        yield finished


def index_all(workspace: Workspace, configs: Iterable[SearchConfig]) -> None:
    """Index for configurations before the first is recorded: tables are kept until the store changes."""
    with resumable(workspace.embedder):
        for config in configs:
            workspace.index_for([find_system(config.name)], workspace.usable(needed([config])))


def rescored(
    workspace: Workspace,
    queries: Sequence[Query],
    configs: Sequence[SearchConfig],
    table: SignalTable,
    rerank: str,
) -> SignalTable:
    """The table with a re-ranker's scores of the places that these configurations read, or of all rows."""
    rescoring = [config for config in configs if reranked(config.finish)]
    rows = np.full(len(table), rerank == "all")
    for config in rescoring if rerank != "all" else []:
        masked = table.at_depth(config.depths)
        rows |= to_rerank(masked, fuse(masked, config.effective), config.finish)
    return workspace.searcher(rescoring[0]).rerank(queries, table, rows)


def record_systems(
    dataset: Dataset,
    systems: list[str],
    out: Path,
    split: str | None,
    limit: int,
    embedder: str,
    rerank: str = "top",
    jobs: int | Executor = 1,
) -> dict[str, int]:
    """Record each system to OUT/<system>.<profile>; return the number of rows by folder."""
    workspace = Workspace.open(dataset, embedder, jobs=jobs)
    queries = dataset.split(split)
    named = find_systems(systems)
    chosen = [system for i, system in enumerate(named) if system not in named[:i]]
    configs = [system.config(limit, workspace.model, os.environ) for system in chosen]
    written = {}
    with ExitStack() as ending:
        recordings: Iterator[Callable[[], SignalTable]] = (
            ending.enter_context(begun(workspace, queries, [config], rerank)) for config in configs
        )
        if workspace.workers.share(len(queries)):  # all are under way at once, so that workers never wait
            first = next(recordings)
            index_all(workspace, configs)  # so that the others read one vault
            recordings = chain([first], [*recordings])
        for system, finished in zip(chosen, recordings, strict=True):
            table = finished()
            folder = out / f"{system.name}.{system.profile}"
            save(table, folder)
            written[str(folder)] = len(table)
    return written


def needed(configs: Iterable[SearchConfig]) -> list[str]:
    """List the signals that live search could fetch for these configurations.

    A strategy or a tier of scorers alone ranks what all of the system's retrievers find, so it needs them all.
    """
    names: set[str] = set()
    for config in configs:
        names |= (config.effective.signals() & FETCHED) | config.needs
        if config.effective.ranks_candidates():
            names |= FINDERS & config.retrievers.keys()
        for name in names & DEPENDENT & config.retrievers.keys():
            names |= set(config.before(name))
    return sorted(names)
